 &
qemu=$!
trap 'kill $qemu 2>/dev/null; wait $qemu' EXIT
while ! grep -q '^\(exit\|fail\)' report 2>/dev/null; do
    if ! kill -0 $qemu 2>/dev/null; then
        # QEMU, when it emulates a CPU that runs guests, occasionally ends one before its kernel prints a word.
        if [ ! -s console ] && [ -z "$AGAIN" ]; then
            echo 'inside: the guest ended before it began, and is started again' >&2
            export AGAIN=1
            exec "$0"
        fi
        echo 'inside: the guest has ended by itself' >&2
        tail -n 20 console >&2
        exit 99
    fi
    sleep 0.5
done
read -r word status out err <<END
$(grep '^\(exit\|fail\)' report)
END
if [ "$word" = fail ]; then
    echo "inside: $status $out $err" >&2
    exit 99
fi
while [ "$(stat -c %s out)" -lt "$out" ] || [ "$(stat -c %s err)" -lt "$err" ]; do sleep 0.1; done
cat out
cat err >&2
exit "$status"
