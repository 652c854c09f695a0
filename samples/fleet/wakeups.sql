-- On which hosts does it take another time from a wakeup to the run since the kernel was changed? The medians before
-- and after, where one is a fifth more than the other.
with kernels as (
    select host, kernel, row_number() over (partition by host order by min(start_ns)) as number
    from traces
    group by host, kernel
),
counted as (
    select t.host, t.kernel, d.dur_ns, sum(d.times) as times
    from durations d join traces t on d.trace = t.trace
    where d.kind = 'wakeup'
    group by t.host, t.kernel, d.dur_ns
),
ranked as (
    select host, kernel, dur_ns,
        sum(times) over (partition by host, kernel order by dur_ns) as up_to,
        sum(times) over (partition by host, kernel) as wakeups
    from counted
),
medians as (
    select host, kernel, min(dur_ns) as median_ns
    from ranked
    where 2 * up_to >= wakeups
    group by host, kernel
),
numbered as (
    select m.host, m.kernel, m.median_ns, k.number
    from medians m join kernels k on m.host = k.host and m.kernel = k.kernel
)
select a.host, b.kernel as before, a.kernel as after, b.median_ns as before_ns, a.median_ns as after_ns
from numbered a join numbered b on a.host = b.host and a.number = b.number + 1
where 5 * a.median_ns >= 6 * b.median_ns or 5 * b.median_ns >= 6 * a.median_ns
order by a.host, after
