-- Which system calls are worst while their threads share a CPU, and on which hosts? The 99th percentile of whole calls
-- in which the thread waited for a CPU that others had, where it is three times that of the usual host, or more. Calls
-- in which threads wait for what comes from outside are left out.
with counted as (
    select host, name, dur_ns, sum(times) as times
    from durations
    where kind = 'syscall' and shared = 1
        and name not in ('epoll_wait', 'poll', 'select', 'futex', 'nanosleep', 'clock_nanosleep')
    group by host, name, dur_ns
),
ranked as (
    select host, name, dur_ns,
        sum(times) over (partition by host, name order by dur_ns) as up_to,
        sum(times) over (partition by host, name) as calls
    from counted
),
percentiles as (
    select host, name, max(calls) as calls, min(dur_ns) as p99_ns
    from ranked
    where 100 * up_to >= 99 * calls
    group by host, name
),
hosts as (
    select name, p99_ns,
        row_number() over (partition by name order by p99_ns, host) as number,
        count(*) over (partition by name) as hosts
    from percentiles
),
usual as (
    select name, min(p99_ns) as usual_ns
    from hosts
    where 2 * number >= hosts
    group by name
)
select host, name, cast(calls as bigint) as calls, p99_ns, usual_ns
from percentiles join usual using (name)
where calls >= 200 and p99_ns >= 3 * usual_ns
order by p99_ns desc, host, name
