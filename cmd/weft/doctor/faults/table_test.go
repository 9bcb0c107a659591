package faults

// fault is something wrong with the node. seed and undo are lines for bash, with the functions of
// node.sh.
type fault struct {
	name string
	// check is the check that finds it; found and remedy are parts of the finding.
	check, found, remedy string
	seed, undo           string
}

// faults are all of them.
var faults = []fault{
	{
		"weft is stopped", "socket", "weft does not run here", "Start weft",
		"stop; rm -f $W/run/weft.sock", "start",
	},
	{
		"weft is killed", "tables", "is in force, and no weft keeps it", "Start weft",
		"stop KILL", "start",
	},
	{
		"weft hangs", "health", "has 127.0.0.1:10256 and does not answer: weft hangs", "Restart weft",
		"kill -STOP $(cat $W/pid)", "kill -CONT $(cat $W/pid)",
	},
	{
		"the server for health checks is elsewhere", "health", "does not answer on 127.0.0.1:10256", "--healthz-address",
		"stop; start --healthz-bind-address 127.0.0.1:10999", "stop; start",
	},
	{
		"table of kube-proxy's nftables mode", "kube-proxy", "rules of kube-proxy are in force: table ip kube-proxy", "weft cleanup --kube-proxy",
		"nft add table ip kube-proxy", "nft delete table ip kube-proxy",
	},
	{
		"chains of kube-proxy's iptables mode", "kube-proxy", "rules of kube-proxy are in force", "weft cleanup --kube-proxy",
		"iptables-nft -t nat -N KUBE-SERVICES; iptables-nft -t nat -A PREROUTING -j KUBE-SERVICES", "nft delete table ip nat",
	},
	{
		"kube-proxy runs", "kube-proxy", "kube-proxy", "order of steps",
		"cp $(command -v sleep) $W/kube-proxy; setsid $W/kube-proxy 1000 >/dev/null 2>&1 </dev/null & echo $! > $W/kube-proxy.pid; await kube-proxy cat /proc/$!/comm", "kill $(cat $W/kube-proxy.pid)",
	},
	{
		"a firewall drops what is forwarded", "foreign-rules", "the policy drop of chain forwarded in table inet firewall", "nft -a list chain inet firewall forwarded",
		"nft 'table inet firewall { chain forwarded { type filter hook forward priority 10; policy drop; ct state established accept; }; }'", "nft delete table inet firewall",
	},
	{
		"a firewall drops packets of the node", "foreign-rules", "of chain sent in table inet firewall, which is another program's, stops packets", "weft explain --from node",
		"nft 'table inet firewall { chain sent { type filter hook output priority 10; ip daddr 10.244.0.0/16 tcp dport 8080 reject; }; }'", "nft delete table inet firewall",
	},
	{
		"a firewall drops replies", "foreign-rules", "stops replies of Services", "established connections",
		"nft 'table inet firewall { chain forwarded { type filter hook forward priority 10; ct direction reply drop; }; }'", "nft delete table inet firewall",
	},
	{
		"a firewall drops a NodePort", "foreign-rules", "tcp from outside to 192.0.2.1:30080", "nft -a list chain ip raw early",
		"nft 'table ip raw { chain early { type filter hook prerouting priority -300; tcp dport 30080 drop; }; }'", "nft delete table ip raw",
	},
	{
		"no forwarding", "forwarding", "net.ipv4.ip_forward is 0", "sysctl -w net.ipv4.ip_forward=1",
		"sysctl -qw net.ipv4.ip_forward=0", "sysctl -qw net.ipv4.ip_forward=1",
	},
	{
		"no IPv6 forwarding", "forwarding", "net.ipv6.conf.all.forwarding is 0", "sysctl -w net.ipv6.conf.all.forwarding=1",
		"sysctl -qw net.ipv6.conf.all.forwarding=0", "sysctl -qw net.ipv6.conf.all.forwarding=1",
	},
	{
		"a device does not forward", "forwarding", "is 0 for pod0", "Set it to 1 for devices of pods",
		"sysctl -qw net.ipv4.conf.pod0.forwarding=0", "sysctl -qw net.ipv4.conf.pod0.forwarding=1",
	},
	{
		"no default route", "routes", `get "network is unreachable" for 1 ClusterIPs: 10.96.0.10`, "ip route add 10.96.0.0/12 dev eth0",
		"ip route del default",
		"ip route add 10.96.0.0/12 dev out0; curl -sI --max-time 5 http://10.96.0.10/ | grep HTTP; ip route add default via 192.0.2.9; ip route del 10.96.0.0/12",
	},
	{
		"the strict check of sources drops", "rp-filter", "rp_filter=1 on out0", "net.ipv4.conf.all.rp_filter=2",
		"sysctl -qw net.ipv4.conf.out0.rp_filter=1; ip -n outside address add 10.244.1.9/32 dev lo; spoof 10.244.1.9 192.0.2.1",
		"sysctl -qw net.ipv4.conf.out0.rp_filter=0",
	},
	{
		"packets between ports of a bridge pass by the rules", "bridges", "bridge cni0 has several ports", "modprobe br_netfilter",
		"ip link add cni0 type bridge; for i in 1 2; do ip link add p$i type veth peer name q$i; ip link set p$i master cni0; done; [ ! -e /proc/sys/net/bridge ] || sysctl -qw net.bridge.bridge-nf-call-iptables=0",
		"ip link del p1; ip link del p2; ip link del cni0",
	},
	{
		"clients get NodePorts", "ports", "ports from 30000 to 32767", "ip_local_reserved_ports=30000-32767",
		"sysctl -qw net.ipv4.ip_local_port_range='1024 60999'", "sysctl -qw net.ipv4.ip_local_port_range='32768 60999'",
	},
	{
		"connection tracking is nearly full", "conntrack", "table is nearly full", "nf_conntrack_max=",
		"track 85", "conntrack -F 2>/dev/null",
	},
	{
		"connection tracking is full", "conntrack", "table is full", "nf_conntrack_max=",
		"track 97", "conntrack -F 2>/dev/null",
	},
	{
		"the state directory is full", "state-directory", "is full", "df -h",
		"dd if=/dev/zero of=$W/state/fill bs=1M 2>/dev/null || true", "rm $W/state/fill",
	},
	{
		"the state directory is nearly full", "state-directory", "is nearly full", "df -h",
		"dd if=/dev/zero of=$W/state/fill bs=1M count=90 2>/dev/null", "rm $W/state/fill",
	},
	{
		"the state directory is read-only", "state-directory", "is read-only", "mount -o remount,rw",
		"mount --bind $W/state $W/state; mount -o remount,bind,ro $W/state", "umount $W/state",
	},
	{
		"others can write the state directory", "state-directory", "other users can change", "chmod go-w",
		"chmod 777 $W/state", "chmod 700 $W/state",
	},
	{
		"the clock was set back", "state-directory", "is in the future", "timedatectl",
		"touch -d 'now + 2 days' $W/state/later", "rm $W/state/later",
	},
	{
		"an update was rejected", "conditions", "fragment uid-0/deny: an update was rejected", "weft get fragment PUBLISHER/NAME",
		"echo 'table inet deny { chain c { ip saddr 192.0.2.7 drop; }; }' | publish deny; ! echo 'table inet deny { chain c { ip sadr 192.0.2.7 drop; }; }' | publish deny", "api delete deny",
	},
	{
		"an element is hidden", "fragments", "1 elements of fragment uid-0/second are hidden", "weft plan",
		"for n in 1 2; do echo \"table inet shared { map m { type inet_service : mark; elements = { 80 : $n }; }; }\" > $W/$n.nft; done; api apply -f $W/1.nft --name first --priority 1; api apply -f $W/2.nft --name second --priority 2",
		"api delete first; api delete second",
	},
	{
		"a table is dormant", "tables", "table inet asleep is dormant", "flag dormant",
		"echo 'table inet asleep { flags dormant; chain c { type filter hook input priority 0; }; }' | publish asleep", "api delete asleep",
	},
	{
		"a publisher is not back", "conditions", "publishers of before the restart have not come back yet (fragments: 1", "weft delete PUBLISHER/NAME",
		"echo 'table inet old { chain c { counter; }; }' | publish old; stop KILL; start", "api delete old; stop; start",
	},
	{
		"a publisher is at its limit", "publishers", "publisher small holds 9 of at most 10 rules", "Raise the limit",
		"echo 'table inet small { chain c { '$(printf 'counter; %.0s' 1 2 3 4 5 6 7 8 9)' }; }' > $W/small.nft; chmod 644 $W/small.nft; setpriv --reuid 1300 --regid 1200 --clear-groups $W/weft apply -f $W/small.nft --socket $W/run/weft.sock --publisher small", "api delete small/small",
	},
	{
		"this user may not ask weft", "socket", "refuses this user", "Run weft doctor as root",
		"touch $W/stranger", "rm $W/stranger",
	},
	{
		"an endpoint refuses connections", "endpoints", "1 endpoints refuse connections: 10.244.1.2:8080", "targetPort",
		"ip netns pids pod | xargs kill; await 'Failed to connect' curl -sS --max-time 1 http://10.244.1.2:8080/", "serve",
	},
	{
		"wrong target port", "endpoints", "1 endpoints refuse connections: 10.244.1.2:8081", "targetPort",
		"slice 10.244.1.2 8081; await '. 8081' nft list map ip weft endpoints", "slice 10.244.1.2 8080; await '. 8080' nft list map ip weft endpoints",
	},
	{
		"an endpoint does not answer", "endpoints", "1 endpoints do not answer this node: 10.244.1.2:8080", "network plugin",
		"ip netns exec pod nft 'table ip deaf { chain c { type filter hook input priority 0; drop; }; }'", "ip netns exec pod nft delete table ip deaf",
	},
	{
		"no route to an endpoint", "endpoints", "1 endpoints cannot be reached from this node: 10.244.1.2:8080", "ip route get",
		"ip route add unreachable 10.244.1.2", "ip route del unreachable 10.244.1.2",
	},
	{
		"another program has the table of IPv4", "conditions", "services is degraded: services: IPv4 stays as it was: fragment services rejected: table ip weft", "another program's table of the name `weft`",
		"squat", "stop; nft delete table ip weft; start",
	},
	{
		"the Services of a family are not in the kernel", "services", "addresses of Services in the API are not in the kernel: 10.96.0.10 . tcp . 80 of default/web", "restart weft",
		"squat", "stop; nft delete table ip weft; start",
	},
	{
		"the cluster CIDR does not fit the Node", "conditions", "node is degraded: the node's podCIDR 10.99.1.0/24 is not in the cluster CIDR", "`--cluster-cidr`, or the Node",
		"sed -i s,10.244.1.0/24,10.99.1.0/24,g $W/manifests/service.yaml", "sed -i s,10.99.1.0/24,10.244.1.0/24,g $W/manifests/service.yaml",
	},
	{
		"an address of no Service", "services", "1 addresses in weft's maps are of no Service: 10.96.0.200 . tcp . 80", "weft get element",
		"echo 'table ip weft { map services { typeof ip daddr . meta l4proto . th dport : verdict; elements = { 10.96.0.200 . tcp . 80 : drop }; }; }' | publish extra", "api delete extra",
	},
	{
		"the kernel sends to a wrong endpoint", "services", "10.9.9.9 . 81 for 10.96.0.10 . tcp . 80 of default/web", "weft get element",
		"echo 'table ip weft { map endpoints { typeof ip daddr . meta l4proto . th dport . numgen random mod 65536 : ip daddr . th dport; elements = { 10.96.0.10 . tcp . 80 . 0 : 10.9.9.9 . 81 }; }; }' | publish wrong --priority -100", "api delete wrong",
	},
}
