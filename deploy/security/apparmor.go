package security

import (
	"fmt"
	"strings"
)

type fileRule struct {
	// path is AppArmor's pattern; a directory ends in a slash.
	path, perms string
	// rare says when weft uses the files; "" if a test must see it.
	rare string
}

// ProfileName returns the name of the AppArmor profile of a kind.
func ProfileName(k Kind) string {
	if k == Single {
		return "weft"
	}
	return "weft-" + string(k)
}

// files returns rules for files; a file without a rule cannot be opened.
func (k Kind) files() []fileRule {
	const process = "/proc/@{pid}/"
	rules := []fileRule{
		{"/weft", "mr", "the program itself: the kernel maps it when it starts"},
		{"/etc/{hosts,resolv.conf,nsswitch.conf,localtime}", "r", "names, and the time in the log"},
		{process + "{cgroup,mountinfo,limits,stat,net/netstat}", "r", ""},
		{"/proc/stat", "r", ""},
		{"/proc/sys/net/core/somaxconn", "r", ""},
		{"/proc/sys/net/ipv6/conf/all/disable_ipv6", "r", "whether the node has IPv6"},
		{"/sys/devices/system/cpu/online", "r", ""},
		{"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "r", ""},
		{"/sys/fs/cgroup/**", "r", "the limit of CPU time, for GOMAXPROCS"},
	}
	if k.followsAPI() {
		rules = append(rules,
			fileRule{"/{,var/}run/secrets/kubernetes.io/serviceaccount/**", "r", ""},
			fileRule{"/var/lib/kube-proxy/{,**}", "r", "the settings of kube-proxy"},
			fileRule{"/run/weft/weft.sock", "rw", ""})
	}
	if k == Services || k == Single {
		rules = append(rules, fileRule{"/var/lib/kubelet/pods-api/pods-api.sock", "rw", "with kubeletPods.enabled"})
	}
	if k == Policy || k == Single {
		rules = append(rules,
			fileRule{"/sys/class/net/", "r", ""},
			fileRule{"/sys/devices/**/net/*/", "r", ""},
			fileRule{"/{,var/}run/nri/nri.sock", "rw", "with networkPolicy.nri"})
	}
	if k == Single {
		rules = append(rules, fileRule{process + "oom_score_adj", "rw", ""})
	}
	switch k {
	case Services, Policy:
	case Aggregator, Single:
		rules = append(rules,
			fileRule{"/run/weft/{,**}", "rwk", ""},
			fileRule{"/var/lib/weft/{,**}", "rwk", ""},
			fileRule{"/etc/weft/{,**}", "r", ""},
			// A configuration matches publishers by cgroup.
			fileRule{"/proc/[0-9]*/cgroup", "r", ""},
			// Root is an administrator only with CAP_NET_ADMIN in weft's user namespace.
			fileRule{"/proc/[0-9]*/status", "r", ""},
			fileRule{"/proc/[0-9]*/uid_map", "r", "of a process with more capabilities"},
			fileRule{process + "uid_map", "r", "likewise"},
			fileRule{"/proc/sys/kernel/random/boot_id", "r", ""},
			// For weft doctor and weft explain.
			fileRule{"/proc/", "r", ""},
			fileRule{"/proc/[0-9]*/{,comm}", "r", ""},
			fileRule{"/proc/{meminfo,uptime,version}", "r", ""},
			fileRule{process + "net/**", "r", ""},
			fileRule{"/proc/sys/net/{bridge,ipv4,ipv6,netfilter}/{,**}", "r", ""},
			fileRule{"/sys/{class,devices/virtual}/net/{,**}", "r", ""},
			fileRule{"/sys/module/nf_conntrack/parameters/hashsize", "r", "the size of connection tracking"},
			fileRule{"/proc/modules", "r", "on a kernel with modules"})
	default:
		panic(fmt.Sprintf("kind %q of a container is unknown", string(k)))
	}
	return rules
}

// AppArmor returns the profiles of all kinds for apparmor_parser.
func AppArmor() string {
	var b strings.Builder
	b.WriteString(`# Made of deploy/security by ` + "`make generate`" + `; do not edit.
# Load it on each node with apparmor_parser -r -W.
abi <abi/3.0>,
#include <tunables/global>
`)
	for _, k := range Kinds() {
		fmt.Fprintf(&b, "\nprofile %s flags=(attach_disconnected,mediate_deleted) {\n", ProfileName(k))
		if k.programsKernel() {
			b.WriteString("  capability net_admin,\n")
		}
		for _, family := range []string{"inet", "inet6"} {
			fmt.Fprintf(&b, "  network %s stream,\n  network %s dgram,\n", family, family)
		}
		b.WriteString("  network netlink raw,\n  network netlink dgram,\n  unix,\n")
		b.WriteString("  signal (receive) peer={unconfined,runc,crun},\n  signal (send, receive) peer=@{profile_name},\n")
		if k.programsKernel() {
			b.WriteString("  # Whether a publisher still runs.\n  signal (send) set=(exists),\n")
		} else {
			b.WriteString("  signal (receive) set=(exists),\n")
		}
		for _, r := range k.files() {
			fmt.Fprintf(&b, "  %s %s,\n", r.path, r.perms)
		}
		if k == Single {
			b.WriteString("  # It tries, as kube-proxy does; in a container they are read-only, and the init container has set them.\n" +
				"  deny /proc/sys/net/netfilter/* w,\n  deny /sys/module/nf_conntrack/parameters/hashsize w,\n")
		}
		b.WriteString("}\n")
	}
	return b.String()
}
