package conditions

import "slices"

// Kind is a possible condition.
type Kind struct {
	// Name is the same in all versions, for alerts.
	Name string
	// Meaning and Remedy lack a full stop.
	Meaning, Remedy string
}

// Names of kinds. A frontend's condition has the frontend's name.
const (
	APIServer      = "api-server"
	Clock          = "clock"
	Aggregator     = "aggregator"
	Socket         = "socket"
	Configuration  = "configuration"
	StateDirectory = "state-directory"
	Conntrack      = "conntrack"
	Tables         = "tables"
	Publishers     = "publishers"
	Fragments      = "fragments"
	Node           = "node"
	Kubelet        = "kubelet"
	PodInterfaces  = "pod-interfaces"
	HTTP           = "http"
	Takeover       = "takeover"
)

const frontendMeaning = "Not ready: its rules are not in force yet. Degraded: the aggregator does not answer or does not commit, changes wait for a minute, some objects were rejected, or an IP family is rejected as a whole: it stays as it was, and the other goes on"

// Kinds are all conditions. TestDocument writes the same table to deploy/docs/operating.md.
var Kinds = []Kind{
	{APIServer, "The API server does not answer, refuses the credentials, or does not let weft list all kinds that it needs: rules stay as they are, and changes wait", "Correct the address, certificate, token or RBAC that the message names. weft tries again by itself"},
	{Clock, "The wall clock was set by 10 s or more in the last 90 s, or the machine was suspended. Rules, retries and confirmations do not depend on it; dates, certificates and expirations do", "None, if the clock is right now; otherwise mend the time service (`timedatectl`, `chronyc tracking`)"},
	{Aggregator, "The aggregator stands by (`--standby`) or has stopped: nothing is committed", "End the other weft; if there is none, start this one again: its log has the reason"},
	{Socket, "Another weft wanted the socket in the last 90 s and was refused: its log says so too", "Run one weft on a node, or give the other `--standby`"},
	{Configuration, "The file of `--config` is not valid: the last good one is in force", "Correct the place that the message names: weft reads the file again by itself"},
	{StateDirectory, "What was committed is not stored: after a reboot, durable fragments may be as they were before", "Make room in the state directory, or its file system writable: weft tries again by itself"},
	{Conntrack, "The connection tracking table is full: new connections are dropped", "Raise `net.netfilter.nf_conntrack_max` (`--conntrack-min`), or stop the client that opens so many connections (`weft top`)"},
	{Tables, "Another program changed weft's tables in the last minute, or the kernel refuses to repair such a change", "Find the program with `nft monitor` and `nft -a list tables`, and stop it from changing weft's tables"},
	{Publishers, "Publishers of before the restart are not back, or the session of one ended 20 s ago or more (and had lasted for 30 s, once). Their fragments are in force as they were", "Start the publishers that the message names, or withdraw their fragments with `weft delete PUBLISHER/NAME`"},
	{Fragments, "The last update of a fragment was rejected, and the fragment is in force as it was before; or a stored fragment is not in force, because the configuration does not have its publisher",
		"Correct the part that the message names (`weft get fragment PUBLISHER/NAME` has the whole message), or withdraw the fragment with `weft delete PUBLISHER/NAME`"},
	{Node, "No Node has the name of this node, or the Node object has no podCIDRs (if it had some, they stay in force), or some outside of the cluster CIDR, or only an address of a family that the node does not have", "Correct `--hostname-override`, `--cluster-cidr`, or the Node"},
	{"services", frontendMeaning, "Correct the Service or stop the program that the message names (another program's table of the name `weft`); if the aggregator does not answer, look at its log. weft tries again by itself"},
	{Kubelet, "The kubelet's Pods API does not report the readiness of this node's pods: endpoints follow the API server alone, as everywhere else. If it is ok, they follow the kubelet too; if there is no such condition, that is not set up", "Start a kubelet of 1.37 or later with the feature gate PodsAPI, let weft read its socket, or set `--kubelet-pods-socket=` to do without. weft connects again by itself"},
	{"network-policies", frontendMeaning + ". Either: the API server does not list ClusterNetworkPolicies, no Node and no pod has the name of this node, or `--policy-start=deny` has no effect. After a restart the rules of before stay meanwhile", "Correct the policy, the right in the API, `--hostname-override`, or the table of another program that the message names; if the aggregator does not answer, look at its log. weft tries again by itself"},
	{PodInterfaces, "For more than 30 s weft has not known the host's end of the interfaces of pods to which policies apply: no route and no port of a bridge leads to their addresses, or other pods have the same interface. Their policies hold for these addresses, and not for others that the pods send from",
		"Find where the path to the pods that the message names ends (`weft get pods` has all): the route (`ip route get ADDRESS`), and on a bridge the neighbour and its port (`ip neigh`, `bridge fdb`). A quiet pod on a bridge is found when the node pings it. weft follows both by itself"},
	{HTTP, "A server for health or metrics does not run, such as beside a kube-proxy that has the port", "Free the port, or give another address (`--healthz-bind-address`, `--metrics-bind-address`)"},
	{Takeover, "With `--takeover`: kube-proxy's rules are still there, or there again", "Take kube-proxy off this node, or wait for the change that the message names"},
}

// KindOf returns a kind by name, or zero.
func KindOf(name string) Kind {
	if i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return Kinds[i]
	}
	return Kind{}
}
