-- What do slow requests of a host share that its normal ones lack? Causes that 10 of 100 of the slowest 2 % have, and
-- not one of 100 between the 40th and the 60th percentile. What is so on half of the hosts is the load's own, and left
-- out.
with counted as (
    select host, dur_ns, count(*) as times
    from requests
    group by host, dur_ns
),
ranked as (
    select host, dur_ns, times,
        sum(times) over (partition by host order by dur_ns) as up_to,
        sum(times) over (partition by host) as requests
    from counted
),
hosts as (
    select host,
        min(case when 100 * up_to >= 40 * requests then dur_ns end) as from_ns,
        min(case when 100 * up_to >= 60 * requests then dur_ns end) as to_ns,
        min(case when 100 * up_to >= 98 * requests then dur_ns end) as slow_ns,
        sum(case when 100 * (up_to - times) >= 98 * requests then times else 0 end) as slow,
        sum(case when 100 * up_to >= 40 * requests and 100 * (up_to - times) < 60 * requests then times else 0 end)
            as normal,
        count(*) over () as hosts
    from ranked
    group by host
),
found as (
    select c.host, c.cause,
        sum(case when c.request_ns > h.slow_ns then 1 else 0 end) as slow,
        sum(case when c.request_ns > h.slow_ns then 0 else 1 end) as normal,
        max(h.slow) as of_slow, max(h.normal) as of_normal, max(h.hosts) as hosts
    from causes c join hosts h on c.host = h.host
    where c.request_ns > h.slow_ns or c.request_ns between h.from_ns and h.to_ns
    group by c.host, c.cause
),
contrasts as (
    select *, count(*) over (partition by cause) as alike
    from found
    where 100 * slow >= 10 * of_slow and 100 * normal <= of_normal
)
select host, cause, cast(slow as bigint) as slow, cast(of_slow as bigint) as of_slow,
    cast(normal as bigint) as normal, cast(of_normal as bigint) as of_normal
from contrasts
where 2 * alike < hosts
order by host, cause
