package model

// Link is the host's end of the interface of a pod; the zero Link is unknown.
type Link struct {
	// Name is the interface on the host.
	Name string
	// Bridged is true for a port of a bridge.
	Bridged bool
}
