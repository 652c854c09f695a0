-- What do slow requests of a host share that its normal ones lack? Causes that 30 of 100 of the slowest 2 % have, and
-- not one of 100 between the 40th and the 60th percentile. What is so on half of the hosts is the load's own, and left
-- out.
with counted as (
    select host, dur_ns, count(*) as times
    from requests
    group by host, dur_ns
),
ranked as (
    select host, dur_ns,
        sum(times) over (partition by host order by dur_ns) as up_to,
        sum(times) over (partition by host) as requests
    from counted
),
bounds as (
    select host,
        min(case when 100 * up_to >= 40 * requests then dur_ns end) as from_ns,
        min(case when 100 * up_to >= 60 * requests then dur_ns end) as to_ns,
        min(case when 100 * up_to >= 98 * requests then dur_ns end) as slow_ns
    from ranked
    group by host
),
sides as (
    select r.host, r.trace, r.request, case when r.dur_ns > b.slow_ns then 1 else 0 end as slow
    from requests r join bounds b on r.host = b.host
    where r.dur_ns > b.slow_ns or r.dur_ns between b.from_ns and b.to_ns
),
totals as (
    select host, sum(slow) as slow, sum(1 - slow) as normal
    from sides
    group by host
),
found as (
    select s.host, c.cause, sum(s.slow) as slow, sum(1 - s.slow) as normal
    from causes c join sides s on c.trace = s.trace and c.request = s.request
    group by s.host, c.cause
),
contrasts as (
    select f.host, f.cause, cast(f.slow as bigint) as slow, cast(t.slow as bigint) as of_slow,
        cast(f.normal as bigint) as normal, cast(t.normal as bigint) as of_normal,
        count(*) over (partition by f.cause) as hosts
    from found f join totals t on f.host = t.host
    where 100 * f.slow >= 30 * t.slow and 100 * f.normal <= t.normal
)
select host, cause, slow, of_slow, normal, of_normal
from contrasts
where 2 * hosts < (select count(*) from totals)
order by host, cause
