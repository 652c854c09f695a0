// SPDX-License-Identifier: BSD-3-Clause
//! Records of programs in memory of their own: all of them are in the trace, at their place, for any fate of the
//! program; and nothing else is.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use kutrace_tests::musl;
use kutrace_tests::skip::skip;
use postprocess::event::number::{
    MARK_A, MARK_D, PROGRAM_ASYNC_BEGIN, PROGRAM_BEGIN, PROGRAM_MARK, PROGRAM_VALUE, SYSCALL, SYSCALL_RETURN,
};
use postprocess::event::Event;
use postprocess::id::Pid;
use postprocess::span::Span;
use postprocess::time::Time;

use crate::guest;
use crate::marks::TAKE;
use crate::trace::Recording;

/// The number of `getppid`.
const GETPPID: u32 = 110;

/// The marks of this name.
fn marks<'a>(trace: &'a Recording, name: &'a str) -> impl Iterator<Item = &'a Event> {
    trace.of(PROGRAM_MARK).filter(move |e| trace.event_name(e) == name)
}

/// Calls, in the test below.
const CALLS: u64 = guest::by_form(10_000, 100_000, 100_000);

#[test]
fn what_a_program_records_lies_between_the_kernel_s_entries_around_it() {
    // On a kernel of Debian's at night.
    let both = &[&[][..], &["--kernel", "stock"]][..];
    for kernel in guest::by_form(&both[..1], both, both) {
        let run = guest::succeed(
            &[&["--cpus", "2"], *kernel].concat(),
            &format!(
                "{TAKE}
                take programs
                kutrace_control go
                echo calls=$(setpriv --reuid 65534 --regid 65534 --clear-groups ./programs calls {CALLS})
                kutrace_control stop $SHARE/t.raw
                ./programs calls 10
                rmmod kutrace"
            ),
        );
        assert_eq!(run.number("calls"), 2 * CALLS);
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
        assert_eq!(order.len() as u64, 3 * CALLS);
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
        assert_eq!((trace.event_name(total), total.value()), ("total", -5_000_000_000));
    }
}

/// Traces, and programs killed in each, in the test below: 10,000 in all when it takes long.
const KILLS: (usize, usize) = guest::by_form((1, 12), (2, 20), (40, 250));

#[test]
fn nothing_that_was_recorded_is_lost_with_a_killed_program() {
    let (traces, kills) = KILLS;
    let run = guest::succeed(
        &[guest::AT_ONCE, "--cpus", "2", "--timeout", "7200"],
        &format!(
            "{TAKE}
            take programs
            for n in $(seq {traces}); do
                # Each gets memory, and none all of it.
                kutrace_control go --marks-memory 512K,256M
                ./programs kills {kills} >$SHARE/$n.counts
                # In the middle of whatever the last did: the trace has what it had published.
                kutrace_control stop $SHARE/$n.raw || [ $? = 3 ]
            done"
        ),
    );
    let mut counted = 0;
    for n in 1..=traces {
        let file = run.file(&format!("{n}.raw"));
        // One of them by other readers, too, which take minutes for millions of entries.
        let trace = if n == 1 && !guest::SOAK { Recording::read(&file) } else { Recording::read_alone(&file) };
        let mut values: HashMap<u32, Vec<u64>> = HashMap::new();
        for e in trace.of(PROGRAM_VALUE) {
            values.entry(e.pid.number()).or_default().push(e.arg.into());
        }
        let said = std::fs::read_to_string(run.file(&format!("{n}.counts"))).unwrap();
        assert_eq!(said.lines().count(), 2 * kills);
        let of_thread = |line: &str| -> Option<(u32, u64)> {
            let (thread, count) = line.split_once(' ')?;
            Some((thread.parse().ok()?, count.parse().ok()?))
        };
        // A thread that was killed before it recorded its number has counted nothing.
        for (thread, count) in said.lines().filter_map(of_thread).filter(|(thread, _)| *thread != 0) {
            let found = values.remove(&thread).unwrap_or_default();
            assert!(found.iter().copied().eq(0..found.len() as u64), "{n}: values of {thread} are missing");
            // At most the one whose call had not returned is more than the program counted.
            assert!((count..=count + 1).contains(&(found.len() as u64)), "{n}: {thread}: {}, {count}", found.len());
            counted += count;
        }
        assert!(values.is_empty(), "{n}: {:?}", values.keys());
    }
    // Two thirds of them were killed after both of their threads had recorded.
    assert!(counted >= 2 * (traces * (kills - kills.div_ceil(3))) as u64, "{counted}");
}

#[test]
fn each_language_and_library_says_it_in_its_own_words() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            "{TAKE}
            take service service_c
            export PYTHONPATH=$LIBRARY/python PYTHONDONTWRITEBYTECODE=1
            ./service
            kutrace_control go
            ./service
            ./service_c
            $TOOLS/examples/requests
            python3 $LIBRARY/examples/service.py
            $TOOLS/examples/service layer
            kutrace_control stop $SHARE/t.raw
            kutrace_control go
            $TOOLS/examples/service
            kutrace_control stop $SHARE/own.raw"
        ),
    );
    what_a_service_says_by_tracing(&Recording::read_whole(&run.file("own.raw")));
    let trace = Recording::read_whole(&run.file("t.raw"));
    what_a_service_says_by_tracing(&trace);
    let said: Vec<_> = trace.of(PROGRAM_MARK).map(|e| trace.event_name(e)).collect();
    let expected = [
        "cpp.reply(status=200,ratio=0.5,path=/index)",
        "log(message=disk_full)",
        "c.found",
        "c.reply(status=200,ratio=0.5,path=/index)",
        "log(message=disk_full)",
        "rust.found",
        "rust.reply(status=200,ratio=0.5,http.path=/index)",
        "log(target=requests,message=disk_sda_full)",
        "python.reply(status=200,ratio=0.5,path=/index)",
        "log(level=WARNING,logger=root,message=disk_93_%_full)",
        "log(message=disk_full)",
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
        "c.handle",
        "c.find(path=/index,cached=false)",
        "rust.handle",
        "rust.find(path=/index,cached=false)",
        "python.handle",
        "python.find(path=/index,cached=false)",
        "handle(path=/index,size=34)",
        "handle(path=/other,size=17)",
        "find(cached=false)",
        "upload(id=7)",
    ] {
        assert!(parts.contains(part), "{part}: {parts:?}");
    }
    let life = |name: &str| -> &Span {
        let found = spans(PROGRAM_ASYNC_BEGIN).find(|s| trace.span_name(s) == name);
        found.unwrap_or_else(|| panic!("{name}"))
    };
    for language in ["cpp", "c", "rust", "python"] {
        life(&format!("{language}.upload(id=7,size=4096)"));
        let queued = trace.of(PROGRAM_VALUE).find(|e| trace.event_name(e) == format!("{language}.queued"));
        assert_eq!(queued.map(Event::value), Some(-3), "{language}");
    }
    // Two tasks take turns on one thread: neither is inside of the other, and each has ended.
    let tasks = ["python.answer(id=1)", "python.answer(id=3)"].map(life);
    let fetches = ["python.fetch(id=2,path=/a)", "python.fetch(id=4,path=/b)"].map(life);
    let end = |s: &Span| s.start + s.dur;
    assert!(tasks[0].start < tasks[1].start && tasks[1].start < end(tasks[0]) && end(tasks[0]) < end(tasks[1]));
    for (task, fetch) in tasks.iter().zip(fetches) {
        assert!(task.start <= fetch.start && end(fetch) <= end(task) && fetch.dur >= Time::SECOND / 200);
    }
}

#[test]
fn programs_that_are_linked_with_musl_mark_too() {
    let programs = musl::programs(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("musl"));
    for program in programs {
        let run = guest::succeed(
            &["--cpus", "2"],
            &format!("kutrace_control go; {}; kutrace_control stop $SHARE/t.raw", program.display()),
        );
        let trace = Recording::read_whole(&run.file("t.raw"));
        let said: Vec<_> = trace.of(PROGRAM_MARK).map(|e| trace.event_name(e)).collect();
        assert!(said.len() == 3 && said[0].ends_with(".found") && said[1].contains("reply(status=200"), "{said:?}");
        assert_eq!(trace.of(PROGRAM_VALUE).map(Event::value).collect::<Vec<_>>(), [-3]);
    }
}

/// By the layer or the subscriber: the records of kutrace-control/tracing/examples/service.rs, alone or with others.
fn what_a_service_says_by_tracing(trace: &Recording) {
    let end = |s: &Span| s.start + s.dur;
    let spans = |event: u32| trace.spans.spans.iter().filter(move |s| s.event() == event as i32);
    let named =
        |event: u32, name: &str| -> Vec<&Span> { spans(event).filter(|s| trace.span_name(s) == name).collect() };
    for reply in ["/index", "/other"] {
        let said = format!("service(level=INFO,message=answered_{reply},status=200,ratio=0.5)");
        assert_eq!(marks(trace, &said).count(), 1, "{said}");
    }
    for part in ["handle(path=/index,size=34)", "handle(path=/other,size=17)"] {
        let [handle] = named(PROGRAM_BEGIN, part)[..] else { panic!("{part}") };
        let is_inside = |s: &&Span| s.thread() == handle.thread() && handle.start <= s.start && end(s) <= end(handle);
        assert_eq!(named(PROGRAM_BEGIN, "find(cached=false)").into_iter().filter(is_inside).count(), 1, "{part}");
    }
    let threads: BTreeSet<_> = named(PROGRAM_BEGIN, "upload(id=7)").into_iter().map(Span::thread).collect();
    assert_eq!(threads.len(), 2);
    let lives: Vec<_> = spans(PROGRAM_ASYNC_BEGIN).map(|s| trace.span_name(s)).collect();
    assert!(lives.iter().any(|life| life.starts_with("upload(id=") && life.ends_with(",id=7)")), "{lives:?}");
    // The task: its life, in which each thread polls it once, after a notice that it is ready.
    let polls = named(PROGRAM_BEGIN, "answer(task=1)");
    let [first, second] = polls[..] else { panic!("{polls:?}") };
    assert_ne!(first.thread(), second.thread());
    let [life] = named(PROGRAM_ASYNC_BEGIN, "answer(id=1)")[..] else { panic!("{lives:?}") };
    let ready = named(PROGRAM_ASYNC_BEGIN, "answer.ready(id=1)");
    let [created, woken] = ready[..] else { panic!("{ready:?}") };
    assert!(life.start <= created.start && end(created) <= first.start && end(first) <= woken.start);
    assert!(end(woken) <= second.start && end(second) <= end(life));
    // Who woke it was the main thread, as who created it; another polled it.
    assert_eq!([created.thread(), woken.thread()], [first.thread(); 2]);
}

/// Marks of each process in places.c, by the order in which they begin, without the child of vfork.
fn places(trace: &Recording) -> Vec<Vec<&str>> {
    let mut said: Vec<(Pid, Vec<&str>)> = Vec::new();
    for e in trace.of(PROGRAM_MARK).filter(|e| trace.event_name(e) != "vfork") {
        match said.iter_mut().find(|(pid, _)| *pid == e.pid) {
            Some((_, names)) => names.push(trace.event_name(e)),
            None => said.push((e.pid, vec![trace.event_name(e)])),
        }
    }
    said.into_iter().map(|(_, names)| names).collect()
}

#[test]
fn marks_are_shown_with_what_they_say_wherever_in_its_life_a_program_makes_them() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            "{TAKE}
            take programs places plugin.so alone
            kutrace_control go
            ./programs typed
            kutrace_control stop $SHARE/typed.raw
            for program in places alone; do
                ./$program
                kutrace_control go
                ./$program
                kutrace_control stop $SHARE/$program.raw
            done"
        ),
    );
    fields_async_parts_and_lines_of_a_log_are_shown(&Recording::read_whole(&run.file("typed.raw")));
    let plugin = ["plugin.comes", "plugin.call", "plugin.goes"];
    for (program, plugins) in [("places", [plugin; 2].concat()), ("alone", Vec::new())] {
        let trace = Recording::read(&run.file(&format!("{program}.raw")));
        // The child of vfork has the memory of its parent's thread, which does not run in that time.
        let quality = &trace.events.meta.quality;
        assert!(
            quality.len() <= 1 && quality.iter().all(|fact| fact.starts_with("1 mark of a program at a time")),
            "{quality:?}"
        );
        let parent = [&["before", "main"][..], &plugins, &["parent", "atexit", "after"]].concat();
        let expected = [&parent[..], &["fork", "before", "executed", "after"], &["clone"]];
        assert_eq!(places(&trace), expected, "{program}");
        let parts = trace.spans.spans.iter().filter(|s| s.event() == PROGRAM_BEGIN as i32);
        assert!(parts.map(|s| trace.span_name(s)).eq(plugins.iter().step_by(3).map(|_| "plugin.part")), "{program}");
    }
}

/// As `programs typed` records them.
fn fields_async_parts_and_lines_of_a_log_are_shown(trace: &Recording) {
    let names: Vec<_> = trace.of(PROGRAM_MARK).map(|e| trace.event_name(e)).collect();
    let otel = "otel(trace_id=4bf92f3577b34da6a3ce929d0e0e4736,span_id=00f067aa0ba902b7)";
    assert_eq!(names, ["typed(u=17,i=-17,f=0.5,b=true,x=0xff,path=/a_b)", "log(message=disk_full)", otel, "last"]);
    let spans = |event: u32| trace.spans.spans.iter().filter(move |s| s.event() == event as i32);
    let uploads: Vec<_> = spans(PROGRAM_ASYNC_BEGIN).collect();
    let [first, second] = uploads[..] else { panic!("{uploads:?}") };
    assert_eq!([first, second].map(|s| trace.span_name(s)), ["upload(id=7,size=4096)", "upload(id=8)"]);
    let part = spans(PROGRAM_BEGIN).next().unwrap();
    let end = |s: &Span| s.start + s.dur;
    let last = marks(trace, "last").next().unwrap();
    assert!(first.start <= second.start && second.start <= part.start && end(part) <= end(second));
    assert!(end(second) < end(first) && end(first) <= last.ts && first.thread() == Some(last.pid));
}

/// Compiles the example in Java, which takes long in a guest, and prints the place of its classes and of jni.h.
fn java() -> Option<(PathBuf, PathBuf)> {
    let library = guest::folder().join("../../kutrace-control/kutrace");
    let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("java");
    let sources = ["java/kutrace/Kutrace.java", "examples/Service.java"].map(|source| library.join(source));
    let compiled = Command::new("javac").arg("-d").arg(&classes).args(sources).status();
    assert!(compiled.as_ref().is_ok_and(|status| status.success()) || compiled.is_err(), "javac: {compiled:?}");
    let found =
        env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join("javac")).find(|file| file.is_file())?;
    Some((classes, found.canonicalize().ok()?.parent()?.parent()?.to_owned()))
}

/// Of the night: a virtual machine for Java takes long to start in a guest.
#[cfg(feature = "night")]
#[test]
fn java_says_it_in_its_own_words() {
    let Some((classes, home)) = java() else { return skip("marks from Java", "there is no javac") };
    let run = guest::succeed(
        &["--timeout", "900"],
        &format!(
            "{TAKE}
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
    assert_eq!((trace.event_name(queued), queued.value()), ("java.queued", -3));
}

/// Threads, one after the other, in the test below: more than there are pages in the memory of a process.
const THREADS: u64 = guest::by_form(1200, 3000, 100_000);

#[test]
fn threads_that_come_and_go_lose_at_most_their_own_marks() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            "{TAKE}
            take programs
            kutrace_control record -b 192M -o $SHARE/t.raw -- sh -c '
                echo threads=$(./programs threads {THREADS})
                echo crowd=$(./programs crowd 100 8)' || [ $? = 3 ]
            kutrace_control record -b 64M --marks-memory 16M,64M -o $SHARE/crowd.raw -- sh -c '
                echo at_once=$(./programs crowd 1000 2)'
            kutrace_control record -b 64M --marks-memory 16M,64M -o $SHARE/throng.raw -- sh -c '
                echo throng=$(./programs throng 4200 20)' || [ $? = 3 ]
            kutrace_control gowrap
            echo wrapped=$(./programs threads 2000)
            ./programs calls 400000
            kutrace_control stop $SHARE/wrap.raw"
        ),
    );
    // Each has a page, and so have the names; further marks are lost and counted, and cost no other process anything.
    assert_eq!([run.number("threads"), run.number("crowd"), run.number("wrapped")], [1023, 800, 2000]);
    assert_eq!(run.number("at_once"), 2000);
    assert_eq!(marks(&Recording::read_whole(&run.file("crowd.raw")), "thread").count(), 2000);
    for (name, mark, recorded, all) in
        [("t.raw", "thread", 1023 + 800, THREADS + 800), ("throng.raw", "throng", 4095 * 20, 4200 * 20)]
    {
        let trace = Recording::read(&run.file(name));
        let quality = &trace.events.meta.quality;
        let lost = quality.iter().find_map(|said| said.split_once(" (programs): ")?.1.split_once(" marks had no room"));
        assert_eq!(recorded + lost.unwrap().0.parse::<u64>().unwrap(), all, "{quality:?}");
        assert_eq!(marks(&trace, mark).count() as u64, recorded);
        assert_eq!((trace.events.meta.lost, trace.of(MARK_A).count(), quality.len()), (0, 0, 1), "{quality:?}");
        let threads: BTreeSet<_> = marks(&trace, mark).map(|e| e.pid).collect();
        assert!(threads.len() as u64 * 20 >= recorded);
    }
    assert_eq!(run.number("throng"), 4095 * 20);
    // The oldest are overwritten.
    let trace = Recording::read(&run.file("wrap.raw"));
    let order: Vec<i64> = marks(&trace, "after").map(|e| e.ts.0).collect();
    assert!(order.len() > 100_000 && order.is_sorted());
    assert_eq!(marks(&trace, "thread").count(), marks(&trace, "thread").map(|e| e.pid).collect::<BTreeSet<_>>().len());
    trace.check();
}

/// The module holds them while they are of a trace, and no longer.
#[test]
fn the_pages_that_programs_had_of_a_trace_go_with_it() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            "{TAKE}
            take programs
            # In a trace of which no program has anything.
            unused() {{
                kutrace_control go
                kutrace_control stop /tmp/t.raw
                rm /tmp/t.raw
                echo 3 >/proc/sys/vm/drop_caches
                sleep 1
                awk '/MemFree/ {{ print $2 }}' /proc/meminfo
            }}
            round() {{
                kutrace_control $@
                ./programs calls 300000
                kutrace_control stop /tmp/t.raw || [ $? = 3 ]
                rm /tmp/t.raw
            }}
            round go
            before=$(unused)
            for n in 1 2 3; do
                round go
                # Most of its parts are granted again.
                round gowrap --marks-memory 1M,8M
            done
            grown=$((before - $(unused)))
            echo grown=$((grown > 0 ? grown : 0))"
        ),
    );
    // Three times four MiB of those and as much of the others would be 24576 kB.
    assert!(run.number("grown") < 16384, "{}", run.out);
}

/// A process may insert a number per second, on any CPUs and in any way; the excess of one is reported with the refused
/// inserts, and the others have all of theirs.
#[test]
fn a_process_that_inserts_more_than_its_rate_is_refused_and_told() {
    let run = guest::succeed(
        &["--cpus", "2", "--no-load"],
        &format!(
            "{TAKE}
            take programs
            insmod $KUTRACE_MODULE usermark_rate=2000 markrate=0
            kutrace_control gowrap
            for process in first second; do echo $process=$(./programs flood 50000); done
            echo modest=$(./programs flood 400)
            kutrace_control status >$SHARE/status
            kutrace_control stop $SHARE/calls.raw 2>$SHARE/said || echo stopped=$?
            rmmod kutrace
            insmod $KUTRACE_MODULE usermark_rate=20000
            kutrace_control gowrap
            echo recorded=$(./programs calls 400000)
            kutrace_control stop $SHARE/memory.raw || [ $? = 3 ]
            kutrace_control go
            kutrace_control status >$SHARE/afterwards
            kutrace_control stop $SHARE/empty.raw
            rmmod kutrace
            insmod $KUTRACE_MODULE usermark_rate=64000 markrate=0
            kutrace_control gowrap
            echo turns=$(taskset -c 0 ./programs turns 3000)"
        ),
    );
    let text = |name: &str| std::fs::read_to_string(run.file(name)).unwrap();
    let taken = ["first", "second"].map(|process| run.number(process));
    assert!(taken.iter().all(|taken| (2000..40_000).contains(taken)), "{taken:?}");
    assert_eq!((run.number("modest"), run.number("stopped")), (800, 3));
    let trace = Recording::read(&run.file("calls.raw"));
    assert_eq!(trace.of(MARK_D).count() as u64, taken[0] + taken[1] + 800);
    let told: Vec<_> =
        trace.events.meta.quality.iter().filter(|said| said.contains("(programs) was refused ")).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    for taken in taken {
        let times = format!("(programs) was refused {} times: ", 100_000 - taken);
        assert!(told.iter().any(|said| said.contains(&times)), "{told:?}, but {taken} taken");
        assert!(text("status").contains(&times) && text("said").contains(&times), "{}{}", text("status"), text("said"));
    }
    // In its own memory, it records again as soon as it may.
    let trace = Recording::read(&run.file("memory.raw"));
    let recorded = run.number("recorded");
    // Of a second and the part that was granted last, and then more.
    assert!((30_000..700_000).contains(&recorded), "{recorded}");
    let last = |event: u32| trace.of(event).last().unwrap();
    let (mark, call) = (last(PROGRAM_MARK), last(SYSCALL + GETPPID));
    assert!((mark.pid, mark.ts.0 + 100_000_000 > call.ts.0) == (call.pid, true), "{mark:?}, {call:?}");
    let quality = &trace.events.meta.quality;
    assert!(quality.iter().any(|said| said.contains("(programs) was refused ")), "{quality:?}");
    let lost = quality.iter().find_map(|said| said.split_once(" (programs): ")?.1.split_once(" marks had no room"));
    let lost: u64 = lost.unwrap().0.parse().unwrap();
    assert!((800_000..=800_005).contains(&(lost + recorded)), "{lost} and {recorded}");
    assert!(!text("afterwards").contains("refused"), "{}", text("afterwards"));
    // The part of the rate that a CPU has taken in advance goes back when another process's turn comes.
    assert_eq!(run.number("turns"), 6000);
}

/// Programs that scribble over all they were granted, in the test below.
const HOSTILE: usize = guest::by_form(10, 30, 1000);

#[test]
fn a_thousand_processes_at_a_time_and_hostile_ones_beside_them() {
    let run = guest::succeed(
        &[guest::AT_ONCE, "--cpus", "2"],
        &format!(
            "{TAKE}
            take programs
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
    // The records of the others are about their own threads.
    let caller = marks(&trace, "before").next().unwrap().pid;
    assert!(marks(&trace, "before").chain(marks(&trace, "after")).all(|e| e.pid == caller));
    let strange = trace.events.meta.quality.iter().filter(|fact| fact.contains("words that no library writes"));
    assert_eq!(strange.count(), HOSTILE);
    // The parent has 8 KiB of the 1 MiB, and so have 127 children; the marks of the others are lost.
    assert_eq!(run.number("refused"), 127);
    let trace = Recording::read(&run.file("full.raw"));
    assert_eq!(marks(&trace, "child").count(), 127);
    let fact = "programs were refused memory for their marks 73 times";
    assert!(run.out.contains(fact) && trace.events.meta.quality.iter().any(|said| said.contains(fact)), "{}", run.out);
}

/// A user other than root can have half of the memory, with any number of processes.
#[test]
fn one_user_leaves_memory_for_marks_to_others() {
    let run = guest::succeed(
        &["--cpus", "2"],
        &format!(
            "{TAKE}
            take programs
            user() {{ setpriv --reuid $1 --regid $1 --clear-groups ./programs processes 100; }}
            kutrace_control go --marks-memory 8K,1M
            echo greedy=$(user 1000)
            echo again=$(user 1000)
            echo other=$(user 1001)
            kutrace_control stop $SHARE/t.raw 2>&1 || [ $? = 3 ]"
        ),
    );
    // Half of 1 MiB is that of 64 processes, of each round the one that starts the others among them: the first user's
    // first round has its half, the second user's its own.
    assert_eq!(["greedy", "again", "other"].map(|who| run.number(who)), [63, 0, 63], "{}", run.out);
    let trace = Recording::read(&run.file("t.raw"));
    let parents = 2;
    assert_eq!(marks(&trace, "child").count(), 2 * 64 - parents, "{}", run.out);
    let fact = |n: usize| format!("programs were refused memory for their marks {n} times");
    let refused = 300 + 3 - 2 * 64;
    assert!(run.out.contains(&fact(refused)), "{}", run.out);
}

#[test]
fn forks_threads_and_a_hostile_program_leave_the_others_whole() {
    let run = guest::succeed(
        &[guest::AT_ONCE, "--cpus", "2"],
        &format!(
            "{TAKE}
            take programs
            kutrace_control go
            ./programs scribble
            echo forks=$(./programs fork 50)
            echo threads=$(./programs threads 200)
            kutrace_control stop $SHARE/t.raw
            kutrace_control gowrap
            echo wrapped=$(./programs calls 400000)
            kutrace_control snapshot $SHARE/snapshot.raw
            kutrace_control stop $SHARE/wrap.raw
            kutrace_control gowrap --marks-memory 64K,1M
            echo brief=$(./programs brief 1000)
            echo after=$(./programs calls 20000)
            kutrace_control stop $SHARE/brief.raw"
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
    // Of processes that have ended, the first make room for the last, and for the further records of a living one.
    assert_eq!((run.number("brief"), run.number("after")), (1000, 40_000));
    let trace = Recording::read(&run.file("brief.raw"));
    let brief: Vec<_> = marks(&trace, "brief").map(|e| e.pid.number()).collect();
    assert!((90..=128).contains(&brief.len()), "{}", brief.len());
    assert!(marks(&trace, "after").count() > 1000);
    // The kernel numbers processes one after the other; some of its own may have come between.
    let after = marks(&trace, "after").next().unwrap().pid.number();
    assert!(after - brief.iter().min().unwrap() < brief.len() as u32 + 20, "{brief:?}, then {after}");
    assert!(!trace.events.meta.quality.iter().any(|said| said.contains("refused memory")));
}
