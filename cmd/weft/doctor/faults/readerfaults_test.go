package faults

// command is what a reader enters: a line for the shell of a machine.
type command struct{ on, line string }

// String returns the command with the prompt of its machine.
func (c command) String() string { return c.on + "# " + c.line }

// symptom is a connection that fails, and how a reader asks for its cause.
type symptom struct {
	name string
	// client cannot connect to url, which answers with answer when nothing is wrong.
	client, url, answer string
	// ask are the commands, in the order of the documentation: weft doctor on the node where the
	// connection comes in, weft explain there, and weft explain on the node of the endpoint, as
	// the second prints it. The output of the last one has cause; the others do not need to.
	ask   []command
	cause string
	// meaning is what the reader concludes, and remedy what is done about it, with mend as a
	// command or, in the manifests of the cluster, with apply.
	meaning, remedy string
	mend            command
	// seed makes the fault, and apply and restore end it: lines for bash with the functions of
	// cluster.sh.
	seed, apply, restore string
}

// Commands and addresses of the cluster.
var (
	doctorFirst = command{"node-1", "weft doctor"}
	explainCart = command{"node-1", "weft explain --from shop/client --to shop/cart:80"}
	followCart  = command{"node-2", "weft explain --from 10.244.1.3 --to 10.244.2.2:8080 --protocol tcp"}
)

const (
	cartURL     = "http://10.96.0.11/"
	webURL      = "http://10.96.0.10/"
	balancerURL = "http://198.51.100.80/"
	isCart      = "this is cart"
	isWeb       = "this is web"
)

// symptoms are the ten.
var symptoms = []symptom{
	{
		name: "Endpoint not ready", client: "client", url: cartURL, answer: isCart,
		seed:    "slice cart 10.244.2.2 node-2 8080 false",
		ask:     []command{doctorFirst, explainCart},
		cause:   "no endpoint of Service shop/cart is used: not ready",
		meaning: "the only pod of the Service is not ready", remedy: "the pod's readiness probe passes again",
		apply: "slice cart 10.244.2.2 node-2 8080 true",
	},
	{
		name: "Wrong target port", client: "client", url: webURL, answer: isWeb,
		seed:    "web 8081; slice web 10.244.1.2 node-1 8081 true",
		ask:     []command{doctorFirst},
		cause:   "1 endpoints refuse connections: 10.244.1.2:8081 of shop/web",
		meaning: "the pod listens on port 8080, and `targetPort` of the Service is 8081", remedy: "`targetPort: 8080`",
		apply: "web; slice web 10.244.1.2 node-1 8080 true",
	},
	{
		name: "A policy denies", client: "client", url: cartURL, answer: isCart,
		seed:    "policy web",
		ask:     []command{doctorFirst, explainCart, followCart},
		cause:   "no rule of policy shop/cart-clients allows it (ingress)",
		meaning: "the NetworkPolicy shop/cart-clients does not accept pod client", remedy: "the policy gets an ingress rule for pod client",
		apply: "policy web client", restore: "rm $W/manifests/policy.yaml",
	},
	{
		name: "A rule of another program drops", client: "client", url: cartURL, answer: isCart,
		seed:    "on node-1 iptables-nft -P FORWARD DROP",
		ask:     []command{doctorFirst},
		cause:   "the policy drop of chain FORWARD in table ip filter, which is another program's, stops packets of Services",
		meaning: "a firewall on node-1 forwards nothing that it does not know", remedy: "the firewall accepts the addresses of pods",
		mend:    command{"node-1", "iptables-nft -A FORWARD -s 10.244.0.0/16 -j ACCEPT; iptables-nft -A FORWARD -d 10.244.0.0/16 -j ACCEPT"},
		restore: "on node-1 nft delete table ip filter",
	},
	{
		name: "The reverse path filter", client: "outside", url: balancerURL, answer: isWeb,
		seed:    "on node-1 sysctl -qw net.ipv4.conf.eth1.rp_filter=1",
		ask:     []command{doctorFirst},
		cause:   "the strict check of sources (rp_filter=1 on eth1) has dropped",
		meaning: "packets of the load balancer come in through eth1, and the way back to the client is through eth0", remedy: "the loose check",
		mend:    command{"node-1", "sysctl -w net.ipv4.conf.all.rp_filter=2"},
		restore: "on node-1 sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth1.rp_filter=0",
	},
	{
		name: "Hairpin", client: "web", url: webURL, answer: isWeb,
		seed:    "ip -n node-1 link set web type bridge_slave hairpin off",
		ask:     []command{doctorFirst, {"node-1", "weft explain --from shop/web --to shop/web:80"}},
		cause:   "bridge cni0 does not send it back through web, the port that it came from: hairpin mode is off",
		meaning: "a pod does not reach itself through its own Service, because its port of the bridge is not in hairpin mode", remedy: "the command that the answer names",
		mend: command{"node-1", "bridge link set dev web hairpin on"},
	},
	{
		name: "No route back", client: "client", url: cartURL, answer: isCart,
		seed:    "ip -n node-2 route del 10.244.1.0/24",
		ask:     []command{doctorFirst, explainCart, followCart},
		cause:   "this node has no route to 10.244.1.3: replies to it are lost",
		meaning: "node-2 has lost its route to the pods of node-1", remedy: "the route",
		mend: command{"node-2", "ip route add 10.244.1.0/24 via 192.0.2.1"},
	},
	{
		name: "Source ranges", client: "outside", url: balancerURL, answer: isWeb,
		seed:    "web 8080 'loadBalancerSourceRanges: [198.51.100.0/24]'",
		ask:     []command{doctorFirst, {"node-1", "weft explain --from 203.0.113.9 --to 198.51.100.80:80"}},
		cause:   "the source is not in loadBalancerSourceRanges of Service shop/web",
		meaning: "the client's address is not in `loadBalancerSourceRanges` of Service shop/web", remedy: "`loadBalancerSourceRanges: [198.51.100.0/24, 203.0.113.0/24]`",
		apply: "web 8080 'loadBalancerSourceRanges: [198.51.100.0/24, 203.0.113.0/24]'", restore: "web",
	},
	{
		name: "Traffic policy Local without endpoints", client: "outside", url: "http://192.0.2.1:30081/", answer: isCart,
		seed:    "cart 'externalTrafficPolicy: Local'",
		ask:     []command{doctorFirst, {"node-1", "weft explain --from outside --to 192.0.2.1:30081"}},
		cause:   "no endpoint of Service shop/cart is used: on another node (traffic policy Local)",
		meaning: "`externalTrafficPolicy` is Local, and the only pod is on node-2", remedy: "`externalTrafficPolicy: Cluster`; a client can also connect to node-2, or a pod be started on node-1",
		apply: "cart 'externalTrafficPolicy: Cluster'", restore: "cart",
	},
	// The last, because the counters of the kernel remember it.
	{
		name: "Connection tracking is full", client: "client", url: webURL, answer: isWeb,
		seed:    "fill node-1",
		ask:     []command{doctorFirst},
		cause:   "error: conntrack: the connection tracking table is full",
		meaning: "new connections have no place in the table: `conntrack -L` shows that 198.18.0.0/16 has all of it", remedy: "the connections of that client are deleted",
		mend: command{"node-1", "conntrack -D -s 198.18.0.0/16 >/dev/null"},
	},
}
