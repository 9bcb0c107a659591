# Functions for the cluster. $W is its directory; bash -e.

# await PATTERN COMMAND...: until the output of the command has the pattern, for 20 s.
await() {
	for _ in $(seq 400); do
		if grep -q -- "$1" <<<"$("${@:2}" 2>&1)"; then return 0; fi
		sleep 0.05
	done
	echo "\"$1\" did not come from: ${*:2}" >&2
	tail -n 5 "$W"/log.* >&2
	return 1
}

# on NAMESPACE COMMAND...: run a command there. Each node has its own /run/weft and /var/lib/weft.
on() {
	ip netns exec "$1" bash -c 'mount --bind "$W/$0/run" /run/weft && mount --bind "$W/$0/state" /var/lib/weft && exec "${@}"' "$@"
}

# machine NAMESPACE...
machine() {
	for ns in "$@"; do
		ip netns add "$ns"
		ip -n "$ns" link set lo up
		mkdir -p "$W/$ns/run" "$W/$ns/state" "$W/$ns/www"
		chmod 700 "$W/$ns/state"
		ip netns exec "$ns" sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
	done
}

# cable NAMESPACE DEVICE ADDRESS|- NAMESPACE DEVICE ADDRESS|-: a veth pair.
cable() {
	ip -n "$1" link add "$2" type veth peer name "$5" netns "$4"
	end "$1" "$2" "$3"
	end "$4" "$5" "$6"
}
end() {
	ip -n "$1" link set "$2" up
	[ "$3" = - ] || ip -n "$1" address add "$3" dev "$2"
	ip netns exec "$1" sysctl -qw "net.ipv4.conf.$2.rp_filter=0"
}

# bridge NAMESPACE NAME ADDRESS PORT...
bridge() {
	ip -n "$1" link add "$2" type bridge
	end "$1" "$2" "$3"
	for port in "${@:4}"; do ip -n "$1" link set "$port" master "$2"; done
}

# pod NAME NODE ADDRESS: connected to the node's bridge, and the route to everything.
pod() {
	machine "$1"
	cable "$2" "$1" - "$1" eth0 "$3/24"
	ip -n "$2" link set "$1" master cni0
	ip -n "$1" route add default via "${3%.*}.1"
}

# serve POD: the program in the pod, which says where it is.
serve() {
	echo "this is $1" >"$W/$1/www/index.html"
	ip netns exec "$1" setsid python3 -m http.server --directory "$W/$1/www" 8080 >/dev/null 2>&1 </dev/null &
	echo $! >"$W/$1/pid"
	await "this is $1" ip netns exec "$1" curl -sS --max-time 5 http://127.0.0.1:8080/
}

# write NAME: the standard input is a manifest of the cluster, in one step.
write() {
	cat >"$W/new"
	mv "$W/new" "$W/manifests/$1.yaml"
}

# web [TARGETPORT [FIELDS]], cart [FIELDS]: the Services, with more fields of the spec.
web() {
	write service-web <<-END
		apiVersion: v1
		kind: Service
		metadata: {name: web, namespace: shop}
		spec: {type: LoadBalancer, clusterIP: 10.96.0.10, clusterIPs: [10.96.0.10], ports: [{port: 80, targetPort: ${1:-8080}, nodePort: 30080}], ${2:-}}
		status: {loadBalancer: {ingress: [{ip: 198.51.100.80}]}}
	END
}
cart() {
	write service-cart <<-END
		apiVersion: v1
		kind: Service
		metadata: {name: cart, namespace: shop}
		spec: {type: NodePort, clusterIP: 10.96.0.11, clusterIPs: [10.96.0.11], ports: [{port: 80, targetPort: 8080, nodePort: 30081}], ${1:-}}
	END
}

# slice SERVICE ADDRESS NODE PORT READY: the endpoint of a Service.
slice() {
	write "slice-$1" <<-END
		apiVersion: discovery.k8s.io/v1
		kind: EndpointSlice
		metadata: {name: $1-1, namespace: shop, labels: {kubernetes.io/service-name: $1}}
		addressType: IPv4
		ports: [{name: "", protocol: TCP, port: $4}]
		endpoints: [{addresses: [$2], nodeName: $3, conditions: {ready: $5}}]
	END
}

# policy POD...: the pods that may connect to shop/cart.
policy() {
	local pods=
	for name in "$@"; do pods+="{podSelector: {matchLabels: {app: $name}}}, "; done
	write policy <<-END
		apiVersion: networking.k8s.io/v1
		kind: NetworkPolicy
		metadata: {name: cart-clients, namespace: shop}
		spec: {podSelector: {matchLabels: {app: cart}}, policyTypes: [Ingress], ingress: [{from: [$pods]}]}
	END
}

# describe NODE ADDRESS POD PODADDRESS ...: the manifests of a node and its pods.
describe() {
	{
		cat <<-END
			apiVersion: v1
			kind: Node
			metadata: {name: $1}
			status: {addresses: [{type: InternalIP, address: $2}]}
		END
		shift 2
		while [ $# -gt 0 ]; do
			cat <<-END
				---
				apiVersion: v1
				kind: Pod
				metadata: {name: $1, namespace: shop, labels: {app: $1}}
				spec: {nodeName: $node, containers: [{name: $1, image: $1}]}
				status: {phase: Running, podIP: $2, podIPs: [{ip: $2}]}
			END
			shift 2
		done
	} | write "$node"
}

# start NODE: weft, until its rules are in force.
start() {
	on "$1" setsid weft run --network-policy --manifests "$W/manifests" --hostname-override "$1" \
		--cluster-cidr 10.244.0.0/16 --conntrack-max-per-core 0 >>"$W/log.$1" 2>&1 </dev/null &
	await 10.96.0.11 ip netns exec "$1" nft list map ip weft endpoints
}

# healthy: make a cluster without faults. Pods of a node are ports of its bridge. Packets from
# outside to the load balancer's address come to node-1 through eth1, and all others through eth0.
healthy() {
	mount -t tmpfs -o mode=755 lib /var/lib
	mkdir -p /run/weft /var/lib/weft "$W/manifests"
	machine router outside node-1 node-2
	cable router port1 - node-1 eth0 192.0.2.1/24
	cable router port2 - node-2 eth0 192.0.2.2/24
	bridge router lan 192.0.2.254/24 port1 port2
	cable router balancer 198.51.100.254/24 node-1 eth1 198.51.100.1/24
	cable router clients 203.0.113.254/24 outside eth0 203.0.113.9/24
	ip -n outside route add default via 203.0.113.254
	ip -n router route add 198.51.100.80 via 198.51.100.1
	ip -n node-1 route add default via 192.0.2.254
	ip -n node-1 route add 10.244.2.0/24 via 192.0.2.2
	ip -n node-2 route add 10.244.1.0/24 via 192.0.2.1
	# No default route, which would take the place of the one to pods.
	ip -n node-2 route add 10.96.0.0/16 dev eth0
	for ns in router node-1 node-2; do
		ip netns exec $ns sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.ip_local_port_range='32768 60999'
	done
	bridge node-1 cni0 10.244.1.1/24
	bridge node-2 cni0 10.244.2.1/24
	pod web node-1 10.244.1.2
	pod client node-1 10.244.1.3
	pod cart node-2 10.244.2.2
	ip -n node-1 link set web type bridge_slave hairpin on
	serve web
	serve cart
	echo '{apiVersion: v1, kind: Namespace, metadata: {name: shop}}' | write shop
	node=node-1 describe node-1 192.0.2.1 web 10.244.1.2 client 10.244.1.3
	node=node-2 describe node-2 192.0.2.2 cart 10.244.2.2
	web
	cart
	slice web 10.244.1.2 node-1 8080 true
	slice cart 10.244.2.2 node-2 8080 true
	start node-1
	start node-2
}

# fails NAMESPACE URL: until a connection fails.
fails() {
	for _ in $(seq 400); do
		if ! on "$1" curl -sS --max-time 1 "$2" >/dev/null 2>&1; then return 0; fi
		sleep 0.05
	done
	echo "$2 still answers $1" >&2
	return 1
}

# fill NODE: its connection tracking table, with established connections of a client. The
# connections from before are deleted, because each that ends would leave a place for a new one.
fill() {
	python3 - >"$W/flows" <<-END
		most = int(open("/proc/sys/net/netfilter/nf_conntrack_max").read())
		for i in range(most + 1000):
		    print("-I -p tcp -s 198.18.0.%d -d 198.18.1.1 --sport %d --dport 80 --state ESTABLISHED -u ASSURED -t 3600" % (i // 60000 + 1, i % 60000 + 1024))
	END
	ip netns exec "$1" conntrack -F
	await 'not enough memory' ip netns exec "$1" conntrack -R "$W/flows"
}
