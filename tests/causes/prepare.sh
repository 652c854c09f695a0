# SPDX-License-Identifier: BSD-3-Clause
# What every case of `cargo xtask bench why` finds in the guest; $1 is the program `plant`.
set -u
cd /tmp
mkdir -p bin disk
for name in $("$1"); do cp "$1" "bin/$name"; done
cp /usr/bin/sqlite3 bin/writer
PATH=/tmp/bin:$PATH

# Servers run on CPU $A, clients on $B, planted causes on $C or with them.
on() { taskset -c "$@"; }
planted=()
plant() { setsid "$@" & planted+=($!); }
end_planted() {
    if [ ${#planted[@]} -gt 0 ]; then
        kill -KILL "${planted[@]/#/-}" 2>/dev/null
        kill -KILL "${planted[@]}" 2>/dev/null
        wait "${planted[@]}" 2>/dev/null
    fi
    planted=()
}
server_on() { taskset -acp "$1" "$2" >/dev/null; }

# What $1 does, recorded as $2.raw.
record() {
    server_on "$A" "$redis"; server_on "$A" "$nginx"; server_on "$A" "$memcached"
    if [ "$(type -t "before_$1")" = function ]; then "before_$1"; fi
    sync
    sleep 0.3
    kutrace_control go
    "case_$1"
    kutrace_control stop --force "/mnt/share/$2.trace" || echo "$2: kutrace_control stop: $?" >&2
    end_planted
    if [ "$(type -t "after_$1")" = function ]; then "after_$1"; fi
}

mkfs.ext4 -q -F /dev/vda && mount /dev/vda disk || exit
mkdir -p disk/www big
for n in $(seq 20); do head -c 20000 /dev/urandom >"disk/www/$n"; done
head -c 400000 /dev/urandom >disk/www/large
(cd big && seq -f 'a-file-with-a-longer-name-than-most-%g' 3000 | xargs touch)
sqlite3 disk/db 'create table t(n integer, text); pragma journal_mode=delete;' >/dev/null

# A root in memory for programs that requests or plants start: files of the host come as late as the host likes.
mkdir -p near/dev near/disk near/bin
for program in bash flock sleep sqlite3 curl ls sort grep wc head "$(gcc -print-prog-name=cc1)"; do
    program=$(command -v "$program")
    cp "$program" near/bin
    cp -L --parents $(ldd "$program" | grep -o '/[^ :]*') near
done
seq 20000 >near/in.txt
mount --bind /dev near/dev
mount --bind disk near/disk
near() { chroot near /bin/bash -c "$*"; }

redis-server --port 6399 --save '' --enable-debug-command yes --dir /tmp >redis.log & redis=$!
memcached -u root -t 2 -p 11299 -l 127.0.0.1 & memcached=$!
cat >nginx.conf <<'CONF'
daemon off; master_process off; pid /tmp/nginx.pid; error_log /tmp/nginx.log; worker_processes 1;
events { worker_connections 64; }
http {
    log_format long '$remote_addr $request $status $pad';
    map $uri $pad { default "PAD"; }
    limit_req_zone $binary_remote_addr zone=all:1m rate=4r/s;
    access_log off; sendfile on; keepalive_requests 1000000;
    client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy; fastcgi_temp_path /tmp/fast;
    uwsgi_temp_path /tmp/uwsgi; scgi_temp_path /tmp/scgi;
    server {
        listen 127.0.0.1:8099;
        location / { root /tmp/disk/www; }
        location /logged { access_log /tmp/access long; return 200 "ok"; }
        location /passed { proxy_pass http://127.0.0.1:8098; }
        location /limited/ { limit_req zone=all burst=100; alias /tmp/disk/www/; }
    }
}
CONF
sed -i "s/PAD/$(head -c 900 /dev/zero | tr '\0' .)/" nginx.conf
mkfifo access
sleep 1000000 <>access & # nginx opens it at its start
nginx -c /tmp/nginx.conf & nginx=$!
until redis-cli -p 6399 ping >/dev/null 2>&1; do sleep 0.05; done
redis-cli -p 6399 debug populate 10000 key 100 >/dev/null
redis-cli -p 6399 set k v >/dev/null
