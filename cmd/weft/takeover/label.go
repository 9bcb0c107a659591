package takeover

// Label is the label of a Node that says which proxy its Services have. The DaemonSet of a
// weft that replaces kube-proxy node by node selects the values Beside and Weft, that of
// kube-proxy all but Weft.
const Label = "weft.dev/proxy"

// The values of Label. A Node without it has kube-proxy alone.
const (
	// Beside is a node on which weft runs beside kube-proxy.
	Beside = "beside"
	// Weft is a node on which weft runs alone.
	Weft = "weft"
)

// The reasons of the events of a Node: what kube-proxy left is removed, and weft's rules are about to
// go because those of kube-proxy are in force.
const (
	ReasonTookOver   = "WeftTookOver"
	ReasonHandedOver = "WeftHandedOver"
)
