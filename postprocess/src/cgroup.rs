// SPDX-License-Identifier: BSD-3-Clause
//! Short name of a control group: the container, pod or systemd unit in its path.
//!
//! A path may lead through several: a container in a pod, a unit in a container. The short form has all of them, each
//! with as many digits of its number as tools for containers show.

/// Number of digits shown of a container's number, and of a pod's.
const CONTAINER: usize = 12;
const POD: usize = 8;

/// Prefixes of components that stand for a container with its number, and the program that made it.
const MAKERS: [(&str, &str); 9] = [
    ("docker-", "docker"),
    ("libpod-conmon-", "conmon"),
    ("libpod-", "podman"),
    ("cri-containerd-", "containerd"),
    ("containerd-", "containerd"),
    ("nerdctl-", "containerd"),
    ("crio-conmon-", "conmon"),
    ("crio-", "cri-o"),
    ("buildkit-", "buildkit"),
];

/// Suffixes of the names of systemd units that have a group.
const UNITS: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];

/// The short form of a path; an unknown path is its own.
pub fn short(path: &str) -> String {
    let components: Vec<&str> = path.split('/').filter(|component| !component.is_empty()).collect();
    let (mut said, mut rest) = (Vec::new(), 0);
    for (at, component) in components.iter().enumerate() {
        let above = at.checked_sub(1).map_or("", |above| components[above]);
        if let Some(text) = pod(component).or_else(|| container(component, above)) {
            said.push(text);
            rest = at + 1;
        }
    }
    let rest = &components[rest..];
    match unit(rest) {
        // Podman puts its processes into a group of this name.
        _ if !said.is_empty() && matches!(rest, [] | ["container"]) => {}
        Some(unit) => said.push(unit),
        None if said.is_empty() => return path.to_string(),
        None => said.push(rest.join("/")),
    }
    said.join("/")
}

/// The pod of Kubernetes that a component stands for.
fn pod(component: &str) -> Option<String> {
    let name = component.strip_suffix(".slice").unwrap_or(component);
    let (_, number) = name.rsplit_once("pod")?;
    let plain = |c: char| c.is_ascii_hexdigit() || matches!(c, '-' | '_');
    let begins = number.get(..POD)?.bytes().all(|c| c.is_ascii_hexdigit());
    (begins && number.len() >= 32 && number.chars().all(plain)).then(|| format!("pod {}", &number[..POD]))
}

/// The container that a component stands for, below another.
fn container(component: &str, above: &str) -> Option<String> {
    let name = component.strip_suffix(".scope").or(component.strip_suffix(".service")).unwrap_or(component);
    let known = MAKERS.iter().find_map(|(prefix, maker)| Some((*maker, name.strip_prefix(prefix)?)));
    let (maker, number) = match known {
        Some(known) => known,
        None if above == "docker" => ("docker", name),
        None => ("container", name),
    };
    is_number(number).then(|| format!("{maker} {}", &number[..CONTAINER]))
}

/// True if this is the number of a container: 32 bytes in hexadecimal.
fn is_number(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|c| c.is_ascii_hexdigit())
}

/// The innermost systemd unit, and the path below it; for a user's unit, with the user.
fn unit(components: &[&str]) -> Option<String> {
    let ends = |component: &&str| UNITS.iter().any(|end| component.ends_with(end) && component.len() > end.len());
    let last = components.iter().rposition(ends)?;
    let unit = components[last..].join("/");
    let user = components[..last].iter().rev().find(|component| component.starts_with("user@"));
    Some(match user.and_then(|user| user.strip_suffix(".service")) {
        Some(user) => format!("{user}/{unit}"),
        None => unit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f2a9b1c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8";

    #[test]
    fn units_of_systemd_are_called_by_their_names() {
        for (path, text) in [
            ("/init.scope", "init.scope"),
            ("/system.slice", "system.slice"),
            ("/system.slice/nginx.service", "nginx.service"),
            ("/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service"),
            ("/system.slice/dev-hugepages.mount", "dev-hugepages.mount"),
            ("/system.slice/systemd-udevd.service/udev", "systemd-udevd.service/udev"),
            ("/user.slice/user-1000.slice/session-3.scope", "session-3.scope"),
            ("/user.slice/user-1000.slice/user@1000.service/init.scope", "user@1000/init.scope"),
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-firefox-2211.scope",
                "user@1000/app-gnome-firefox-2211.scope",
            ),
            (
                "/machine.slice/machine-qemu_x2d1_x2dvm.scope/libvirt/vcpu0",
                "machine-qemu_x2d1_x2dvm.scope/libvirt/vcpu0",
            ),
        ] {
            assert_eq!(short(path), text);
        }
    }

    #[test]
    fn containers_are_called_by_their_makers_and_the_first_digits_of_their_numbers() {
        for (path, text) in [
            (format!("/docker/{ID}"), "docker 3f2a9b1c4d5e"),
            (format!("/system.slice/docker-{ID}.scope"), "docker 3f2a9b1c4d5e"),
            (format!("/system.slice/docker-{ID}.scope/init.scope"), "docker 3f2a9b1c4d5e/init.scope"),
            (format!("/system.slice/docker-{ID}.scope/system.slice/cron.service"), "docker 3f2a9b1c4d5e/cron.service"),
            (format!("/machine.slice/libpod-{ID}.scope/container"), "podman 3f2a9b1c4d5e"),
            (format!("/machine.slice/libpod-conmon-{ID}.scope"), "conmon 3f2a9b1c4d5e"),
            (format!("/libpod_parent/libpod-{ID}"), "podman 3f2a9b1c4d5e"),
            (
                format!("/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container"),
                "podman 3f2a9b1c4d5e",
            ),
        ] {
            assert_eq!(short(&path), text);
        }
    }

    #[test]
    fn containers_of_kubernetes_are_called_by_their_pods_too() {
        let uid = "2f5c1b3e-9d3a-4c6e-8f0b-1a2b3c4d5e6f";
        let low = uid.replace('-', "_");
        for (path, text) in [
            (
                format!("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{low}.slice/cri-containerd-{ID}.scope"),
                "pod 2f5c1b3e/containerd 3f2a9b1c4d5e",
            ),
            (format!("/kubepods.slice/kubepods-pod{low}.slice/crio-{ID}.scope"), "pod 2f5c1b3e/cri-o 3f2a9b1c4d5e"),
            (format!("/kubepods/besteffort/pod{uid}/{ID}"), "pod 2f5c1b3e/container 3f2a9b1c4d5e"),
            (format!("/kubepods/burstable/pod{}", &ID[..32]), "pod 3f2a9b1c"),
            (
                format!("/system.slice/docker-{ID}.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{low}.slice/cri-containerd-{ID}.scope"),
                "docker 3f2a9b1c4d5e/pod 2f5c1b3e/containerd 3f2a9b1c4d5e",
            ),
            ("/kubepods.slice/kubepods-burstable.slice".to_string(), "kubepods-burstable.slice"),
        ] {
            assert_eq!(short(&path), text);
        }
    }

    #[test]
    fn what_is_not_known_stays_as_it_is() {
        for path in
            ["/", "", "/outer/inner", "/../../x", "/docker/short", "/lxc.payload.web", "/docker-\u{e9}.x", "/podx"]
        {
            assert_eq!(short(path), path);
        }
        assert_eq!(short("/.scope/a"), "/.scope/a");
    }
}
