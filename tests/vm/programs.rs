// SPDX-License-Identifier: BSD-3-Clause
//! What programs record into memory of their own: all of it is in the trace, where it happened, whatever became of the
//! program; and nothing else is.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use kutrace_tests::skip::skip;
use postprocess::event::number::{
    PROGRAM_ASYNC_BEGIN, PROGRAM_BEGIN, PROGRAM_MARK, PROGRAM_VALUE, SYSCALL, SYSCALL_RETURN,
};
use postprocess::event::Event;
use postprocess::span::Span;

use crate::guest;
use crate::trace::Recording;

/// The number of `getppid`.
const GETPPID: u32 = 110;

/// Builds the program that records.
const BUILD: &str = "
    cd /tmp
    TOOLS=$(dirname $(command -v kutrace_control))
    cp $TOOLS/libkutrace.so .
    export LD_LIBRARY_PATH=/tmp
    gcc -O2 -Wall -Werror -pthread -I$VM/../../kutrace-control/kutrace/include $VM/programs.c -L. -lkutrace -o programs
    ";

/// The marks of this name.
fn marks<'a>(trace: &'a Recording, name: &'a str) -> impl Iterator<Item = &'a Event> {
    trace.of(PROGRAM_MARK).filter(move |e| trace.event_name(e) == name)
}

#[test]
fn what_a_program_records_lies_between_the_kernel_s_entries_around_it() {
    for options in [&[][..], &["--kernel", "stock"]] {
        let run = guest::succeed(
            options,
            &format!(
                "{BUILD}
                kutrace_control go
                echo calls=$(setpriv --reuid 65534 --regid 65534 --clear-groups ./programs calls 100000)
                kutrace_control stop $SHARE/t.raw
                ./programs calls 10
                rmmod kutrace"
            ),
        );
        assert_eq!(run.number("calls"), 200_000);
        let trace = Recording::read_whole(&run.file("t.raw"));
        let pid = marks(&trace, "before").next().unwrap().pid;
        let order: Vec<u8> = (trace.events.events.iter())
            .filter(|e| e.pid == pid)
            .filter_map(|e| match e.event() {
                PROGRAM_MARK if trace.event_name(e) == "before" => Some(b'b'),
                PROGRAM_MARK if trace.event_name(e) == "after" => Some(b'a'),
                event if event == SYSCALL + GETPPID => Some(b'c'),
                event if event == SYSCALL_RETURN + GETPPID => None,
                _ => None,
            })
            .collect();
        assert_eq!(order.len(), 300_000);
        assert!(order.chunks(3).all(|three| three == b"bca"));
        let part = |name: &str| {
            let mut found =
                trace.spans.spans.iter().filter(|s| s.event() == PROGRAM_BEGIN as i32 && trace.span_name(s) == name);
            let part = found.next().unwrap();
            assert!(found.next().is_none() && part.thread() == Some(pid));
            (part.start, part.start + part.dur)
        };
        let (all, inner) = (part("all"), part("loop"));
        assert!(all.0 <= inner.0 && inner.0 < inner.1 && inner.1 <= all.1);
        let total = trace.of(PROGRAM_VALUE).next().unwrap();
        assert_eq!((trace.event_name(total), total.arg, total.ret), ("total=-5000000000", 0xd5fa_0e00, -2));
    }
}

/// Traces, and programs killed in each, in the test below.
const KILLS: (usize, usize) = if guest::SOAK { (50, 200) } else { (2, 6) };

#[test]
fn nothing_that_was_recorded_is_lost_with_a_killed_program() {
    let (traces, kills) = KILLS;
    let run = guest::succeed(
        &[],
        &format!(
            "{BUILD}
            for n in $(seq {traces}); do
                kutrace_control go
                for k in $(seq {kills}); do
                    truncate -s 4096 counts
                    ./programs kill 1<>counts &
                    sleep 0.0$(($k % 7 + 1))
                    kill -9 $!
                    wait $! || true
                    od -An -v -t u8 -w8 counts | awk -v n=$n '
                        NR == 1 || NR == 9 {{ count = $1 }}
                        NR == 2 || NR == 10 {{ print n, $1, count }}' >>$SHARE/counts
                    rm counts
                done
                # In the middle of whatever the last did: the trace has what it had published.
                kutrace_control stop $SHARE/$n.raw || [ $? = 3 ]
            done"
        ),
    );
    let said = std::fs::read_to_string(run.file("counts")).unwrap();
    let numbers = |line: &str| -> Vec<u64> { line.split(' ').map(|number| number.parse().unwrap()).collect() };
    let said: Vec<Vec<u64>> = said.lines().map(numbers).collect();
    assert_eq!(said.len(), 2 * traces * kills);
    for n in 1..=traces {
        let trace = Recording::read(&run.file(&format!("{n}.raw")));
        let mut values: HashMap<u32, Vec<u64>> = HashMap::new();
        for e in trace.of(PROGRAM_VALUE) {
            values.entry(e.pid.number()).or_default().push(e.arg.into());
        }
        for line in said.iter().filter(|line| line[0] == n as u64 && line[1] != 0) {
            let (thread, count) = (line[1] as u32, line[2]);
            let found = values.remove(&thread).unwrap_or_default();
            assert!(found.iter().copied().eq(0..found.len() as u64), "{n}: values of {thread} are missing");
            // At most the one whose call had not returned is more than the program counted.
            assert!((count..=count + 1).contains(&(found.len() as u64)), "{n}: {thread}: {}, {count}", found.len());
        }
        assert!(values.is_empty(), "{n}: {:?}", values.keys());
    }
    assert!(said.iter().map(|line| line[2]).sum::<u64>() > 1000, "{said:?}");
}

#[test]
fn fields_async_parts_and_lines_of_a_log_are_shown_with_what_they_say() {
    let run = guest::succeed(
        &[],
        &format!("{BUILD} kutrace_control go; ./programs typed; kutrace_control stop $SHARE/t.raw"),
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let names: Vec<_> = trace.of(PROGRAM_MARK).map(|e| trace.event_name(e)).collect();
    assert_eq!(names, ["typed(u=17,i=-17,f=0.5,b=true,x=0xff,path=/a_b)", "log(message=disk_full)", "last"]);
    let spans = |event: u32| trace.spans.spans.iter().filter(move |s| s.event() == event as i32);
    let uploads: Vec<_> = spans(PROGRAM_ASYNC_BEGIN).collect();
    let [first, second] = uploads[..] else { panic!("{uploads:?}") };
    assert_eq!([first, second].map(|s| trace.span_name(s)), ["upload(id=7,size=4096)", "upload(id=8,size=?)"]);
    let part = spans(PROGRAM_BEGIN).next().unwrap();
    let end = |s: &Span| s.start + s.dur;
    let last = marks(&trace, "last").next().unwrap();
    assert!(first.start <= second.start && second.start <= part.start && end(part) <= end(second));
    assert!(end(second) < end(first) && end(first) <= last.ts && first.thread() == Some(last.pid));
}

#[test]
fn each_language_and_library_says_it_in_its_own_words() {
    let end = |s: &Span| s.start + s.dur;
    let run = guest::succeed(
        &[],
        &format!(
            "{BUILD}
            LIBRARY=$VM/../../kutrace-control/kutrace
            g++ -std=c++17 -Wall -Werror -I$LIBRARY/include $LIBRARY/examples/service.cc -L. -lkutrace -o service
            export PYTHONPATH=$LIBRARY/python PYTHONDONTWRITEBYTECODE=1
            ./service
            kutrace_control go
            ./service
            python3 $LIBRARY/examples/service.py
            $TOOLS/examples/service
            kutrace_control stop $SHARE/t.raw"
        ),
    );
    let trace = Recording::read_whole(&run.file("t.raw"));
    let said: Vec<_> = trace.of(PROGRAM_MARK).map(|e| trace.event_name(e)).collect();
    let expected = [
        "cpp.reply(status=200,ratio=0.5,path=/index)",
        "log(message=disk_full)",
        "python.reply(status=200,ratio=0.5,path=/index)",
        "log(level=WARNING,logger=root,message=disk_93_%_full)",
        "python.done",
        "log(level=INFO,target=service,message=ready:_true)",
        "service(level=INFO,message=answered_/index,status=200,ratio=0.5)",
        "service(level=INFO,message=answered_/other,status=200,ratio=0.5)",
        "log(level=WARN,target=service,message=done:_true)",
    ];
    assert_eq!(said, expected);
    let spans = |event: u32| trace.spans.spans.iter().filter(move |s| s.event() == event as i32);
    let parts: BTreeSet<_> = spans(PROGRAM_BEGIN).map(|s| trace.span_name(s)).collect();
    for part in [
        "cpp.handle",
        "cpp.find(path=/index,cached=false)",
        "python.handle",
        "python.find(path=/index,cached=false)",
        "handle(path=/index,size=34)",
        "handle(path=/other,size=17)",
        "find(cached=false)",
        "upload(id=7)",
    ] {
        assert!(parts.contains(part), "{part}: {parts:?}");
    }
    let threads: BTreeSet<_> =
        spans(PROGRAM_BEGIN).filter(|s| trace.span_name(s) == "upload(id=7)").map(Span::thread).collect();
    assert_eq!(threads.len(), 2);
    let polls: Vec<_> = spans(PROGRAM_BEGIN).filter(|s| trace.span_name(s) == "answer(task=1)").collect();
    assert!(polls.len() == 2 && polls[0].thread() != polls[1].thread(), "{polls:?}");
    let life = spans(PROGRAM_ASYNC_BEGIN).find(|s| trace.span_name(s) == "answer(id=1)").expect("a task");
    assert!(polls.iter().all(|poll| life.start <= poll.start && end(poll) <= end(life)));
    let lives: Vec<_> = spans(PROGRAM_ASYNC_BEGIN).map(|s| trace.span_name(s)).collect();
    assert!(
        lives.contains(&"cpp.upload(id=7,size=4096)") && lives.contains(&"python.upload(id=7,size=4096)"),
        "{lives:?}"
    );
    assert!(lives.iter().any(|life| life.starts_with("upload(id=") && life.ends_with(",id=7)")), "{lives:?}");
}

/// Compiles the example in Java, which takes long in a guest, and says where its classes and jni.h are.
fn java() -> Option<(PathBuf, PathBuf)> {
    let library = guest::folder().join("../../kutrace-control/kutrace");
    let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("java");
    let sources = ["java/Kutrace.java", "examples/Service.java"].map(|source| library.join(source));
    let compiled = Command::new("javac").arg("-d").arg(&classes).args(sources).status();
    assert!(compiled.as_ref().is_ok_and(|status| status.success()) || compiled.is_err(), "javac: {compiled:?}");
    let found =
        env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join("javac")).find(|file| file.is_file())?;
    Some((classes, found.canonicalize().ok()?.parent()?.parent()?.to_owned()))
}

#[test]
fn java_says_it_in_its_own_words() {
    let Some((classes, home)) = java() else { return skip("marks from Java", "there is no javac") };
    let run = guest::succeed(
        &["--timeout", "900"],
        &format!(
            "{BUILD}
            LIBRARY=$VM/../../kutrace-control/kutrace
            HOME_OF_JAVA={}
            gcc -O2 -Wall -Werror -shared -fPIC -I$LIBRARY/include -I$HOME_OF_JAVA/include \\
                -I$HOME_OF_JAVA/include/linux $LIBRARY/java/kutrace_java.c -L. -lkutrace -o libkutrace_java.so
            kutrace_control record -b 128M -o $SHARE/t.raw -- $HOME_OF_JAVA/bin/java -Xint -XX:+UseSerialGC \\
                -Djava.library.path=. -cp {} Service",
            home.display(),
            classes.display()
        ),
    );
    let trace = Recording::read_whole_alone(&run.file("t.raw"));
    let said: Vec<_> = trace.of(PROGRAM_MARK).map(|e| trace.event_name(e)).collect();
    assert_eq!(said, ["java.reply(status=200,ratio=0.5,path=/index)", "java.done"]);
    let names = |event: u32| -> BTreeSet<_> {
        trace.spans.spans.iter().filter(|s| s.event() == event as i32).map(|s| trace.span_name(s)).collect()
    };
    assert_eq!(names(PROGRAM_BEGIN), BTreeSet::from(["java.find(path=/index,cached=false)", "java.handle"]));
    assert_eq!(names(PROGRAM_ASYNC_BEGIN), BTreeSet::from(["java.upload(id=7,size=4096)"]));
    let queued = trace.of(PROGRAM_VALUE).next().expect("a value");
    assert_eq!(trace.event_name(queued), "java.queued=-3");
}

/// Threads, one after the other, in the test below; a process had memory for about 1,000 before they shared it.
const THREADS: u64 = if guest::SOAK { 100_000 } else { 3000 };

#[test]
fn threads_that_come_and_go_share_what_one_of_them_needs() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            "{BUILD}
            kutrace_control record -b 192M -o $SHARE/t.raw -- sh -c '
                echo threads=$(./programs threads {THREADS})
                echo crowd=$(./programs crowd 200 10)'
            kutrace_control gowrap
            echo wrapped=$(./programs threads 2000)
            ./programs calls 400000
            kutrace_control stop $SHARE/wrap.raw"
        ),
    );
    assert_eq!((run.number("threads"), run.number("crowd"), run.number("wrapped")), (THREADS, 2000, 2000));
    let trace = Recording::read_whole(&run.file("t.raw"));
    let threads: Vec<_> = marks(&trace, "thread").map(|e| e.pid).collect();
    assert_eq!(threads.len() as u64, THREADS + 2000);
    // Their numbers are used again after 32,768.
    let distinct = threads.iter().collect::<BTreeSet<_>>().len();
    assert!(distinct == threads.len() || distinct > 30_000, "{distinct}");
    // What is overwritten is the oldest.
    let trace = Recording::read(&run.file("wrap.raw"));
    let order: Vec<i64> = marks(&trace, "after").map(|e| e.ts.0).collect();
    assert!(order.len() > 100_000 && order.is_sorted());
    assert_eq!(marks(&trace, "thread").count(), marks(&trace, "thread").map(|e| e.pid).collect::<BTreeSet<_>>().len());
    trace.check();
}

/// Programs that scribble over all they were granted, in the test below.
const HOSTILE: usize = if guest::SOAK { 1000 } else { 30 };

#[test]
fn a_thousand_processes_at_a_time_and_hostile_ones_beside_them() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            "{BUILD}
            kutrace_control go
            (for n in $(seq {HOSTILE}); do ./programs scribble $n || exit; done; echo scribbled=$n) &
            echo processes=$(./programs processes 1000)
            echo calls=$(./programs calls 1000)
            wait
            kutrace_control stop $SHARE/t.raw || [ $? = 3 ]
            kutrace_control go --marks-memory 8K,1M
            echo refused=$(./programs processes 200)
            kutrace_control stop $SHARE/full.raw 2>&1 || [ $? = 3 ]"
        ),
    );
    assert_eq!((run.number("scribbled"), run.number("processes"), run.number("calls")), (HOSTILE as u64, 1000, 2000));
    let trace = Recording::read(&run.file("t.raw"));
    let children: BTreeSet<_> = marks(&trace, "child").map(|e| e.pid).collect();
    let (before, after) = (marks(&trace, "before").count(), marks(&trace, "after").count());
    assert_eq!((children.len(), before, after), (1000, 1000, 1000));
    // What the others say is of their own threads.
    let caller = marks(&trace, "before").next().unwrap().pid;
    assert!(marks(&trace, "before").chain(marks(&trace, "after")).all(|e| e.pid == caller));
    let strange = trace.events.meta.quality.iter().filter(|fact| fact.contains("words that no library writes"));
    assert_eq!(strange.count(), HOSTILE);
    // The parent has 8 KiB of the 1 MiB, and so have 127 children; the others mark by system calls.
    assert_eq!(run.number("refused"), 200);
    let trace = Recording::read(&run.file("full.raw"));
    assert_eq!(marks(&trace, "child").count(), 127);
    let fact = "programs were refused memory for their marks 73 times";
    assert!(run.out.contains(fact) && trace.events.meta.quality.iter().any(|said| said.contains(fact)), "{}", run.out);
}

#[test]
fn forks_threads_and_a_hostile_program_leave_the_others_whole() {
    let run = guest::succeed(
        &[],
        &format!(
            "{BUILD}
            kutrace_control go
            ./programs scribble
            echo forks=$(./programs fork 50)
            echo threads=$(./programs threads 200)
            kutrace_control stop $SHARE/t.raw
            kutrace_control gowrap
            echo wrapped=$(./programs calls 400000)
            kutrace_control snapshot $SHARE/snapshot.raw
            kutrace_control stop $SHARE/wrap.raw"
        ),
    );
    assert_eq!((run.number("forks"), run.number("threads"), run.number("wrapped")), (50, 200, 800_000));
    let trace = Recording::read(&run.file("t.raw"));
    let quality = &trace.events.meta.quality;
    assert!(quality.iter().any(|fact| fact.contains("words that no library writes")), "{quality:?}");
    assert_eq!(marks(&trace, "scribbler").count(), 1);
    let children: BTreeSet<_> = marks(&trace, "child").map(|e| e.pid).collect();
    let threads: BTreeSet<_> = marks(&trace, "thread").map(|e| e.pid).collect();
    assert_eq!((children.len(), threads.len(), marks(&trace, "parent").count()), (50, 200, 1));
    for name in ["snapshot", "wrap"] {
        let trace = Recording::read(&run.file(&format!("{name}.raw")));
        assert!(marks(&trace, "before").count() > 100_000, "{name}");
        trace.check();
    }
}
