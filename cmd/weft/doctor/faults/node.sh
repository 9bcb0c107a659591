# Functions for the faults. $W is the directory of the node; bash -e.
run="$W/weft run --manifests $W/manifests --hostname-override node-1 --cluster-cidr 10.244.0.0/16 --config $W/config.yaml"
run="$run --socket $W/run/weft.sock --state-dir $W/state --conntrack-max-per-core 0"

# await PATTERN COMMAND...: until the output of the command has the pattern, for 10 s.
await() {
	for _ in $(seq 200); do
		if grep -q -- "$1" <<<"$("${@:2}" 2>&1)"; then return 0; fi
		sleep 0.05
	done
	echo "\"$1\" did not come from: ${*:2}" >&2
	tail -n 5 "$W/log" >&2
	return 1
}

api() { "$W/weft" "$@" --socket "$W/run/weft.sock"; }

# launch [FLAG...]: start weft.
launch() {
	setsid $run "$@" >>"$W/log" 2>&1 </dev/null &
	echo $! >"$W/pid"
}

# start [FLAG...]: start weft, and wait until its rules are in force.
start() {
	launch "$@"
	await services/services api get
	await 10.96.0.10 nft list map ip weft services
}

# stop [SIGNAL]: end weft, and wait for it.
stop() {
	kill -"${1:-TERM}" "$(cat "$W/pid")"
	while kill -0 "$(cat "$W/pid")" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$(cat "$W/pid")/status"; do sleep 0.02; done
}

# squat: another program has the table of IPv4 when weft starts.
squat() {
	stop
	api cleanup
	nft 'table ip weft { chain theirs { }; }'
	launch
	await 'table ip weft' api get status
}

# serve: the program in the pod.
serve() {
	ip netns exec pod setsid python3 -m http.server --bind 10.244.1.2 8080 >/dev/null 2>&1 </dev/null &
	await HTTP/1 curl -sI --max-time 1 http://10.244.1.2:8080/
}

# slice ADDRESS PORT: the only endpoint of the Service.
slice() {
	cat >"$W/new.yaml" <<-END
		apiVersion: discovery.k8s.io/v1
		kind: EndpointSlice
		metadata: {name: web-1, namespace: default, labels: {kubernetes.io/service-name: web}}
		addressType: IPv4
		ports: [{name: "", protocol: TCP, port: $2}]
		endpoints: [{addresses: [$1], nodeName: node-1}]
	END
	mv "$W/new.yaml" "$W/manifests/slice.yaml"
}

# publish NAME [FLAG...]: the standard input is the file of a fragment.
publish() {
	cat >"$W/$1.nft"
	api apply -f "$W/$1.nft" --name "$@"
}

# healthy: make a node without faults.
healthy() {
	mkdir -p "$W/manifests" "$W/state"
	mount -t tmpfs -o size=128m,mode=700 state "$W/state"
	ip link set lo up
	for ns in pod outside; do ip netns add $ns; ip -n $ns link set lo up; done
	ip link add pod0 type veth peer name eth0 netns pod
	ip link add out0 type veth peer name eth0 netns outside
	for dev in pod0 out0; do ip link set $dev up; done
	for ns in pod outside; do ip -n $ns link set eth0 up; done
	ip address add 10.244.1.1/24 dev pod0
	ip -n pod address add 10.244.1.2/24 dev eth0
	ip -n pod route add default via 10.244.1.1
	ip address add 192.0.2.1/24 dev out0
	ip -6 address add 2001:db8::1/64 dev out0 nodad
	ip -n outside address add 192.0.2.9/24 dev eth0
	ip route add default via 192.0.2.9
	sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.ip_local_port_range='32768 60999'
	for dev in pod0 out0; do sysctl -qw net.ipv4.conf.$dev.rp_filter=0; done
	cat >"$W/config.yaml" <<-END
		apiVersion: weft.dev/v1alpha1
		kind: Configuration
		socketGroup: 1200
		publishers:
		- name: small
		  match: {uid: 1300}
		  allow: {tables: [{name: "small*"}], hooks: [input]}
		  limits: {rules: 10}
	END
	cat >"$W/manifests/service.yaml" <<-END
		apiVersion: v1
		kind: Service
		metadata: {name: web, namespace: default}
		spec:
		  type: NodePort
		  clusterIP: 10.96.0.10
		  clusterIPs: [10.96.0.10]
		  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
		---
		apiVersion: v1
		kind: Node
		metadata: {name: node-1}
		spec: {podCIDR: 10.244.1.0/24, podCIDRs: [10.244.1.0/24]}
		status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}
	END
	slice 10.244.1.2 8080
	serve
	start
}

# track PERCENT: fill the connection tracking table with connections of this node to itself.
track() {
	python3 - "$1" <<-END
		import socket, sys
		left = int(open("/proc/sys/net/netfilter/nf_conntrack_max").read()) * int(sys.argv[1]) // 100
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		for host in range(1, 255):
		    for port in range(1, 65536):
		        if left == 0:
		            sys.exit()
		        try:
		            s.sendto(b"", ("198.51.100.%d" % host, port))
		        except OSError:
		            pass
		        left -= 1
	END
}

# spoof SOURCE TO: the client outside sends a datagram from an address that is not its own.
spoof() {
	ip netns exec outside python3 - "$@" <<-END
		import socket, sys
		s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		s.bind((sys.argv[1], 0))
		s.sendto(b"", (sys.argv[2], 9))
	END
}
