// Package render turns the local model into one fragment of ruleset and, from
// then on, into patches of it.
//
// The ruleset has a constant number of objects; only map elements grow with the
// Services. Each address, protocol and port that a Service answers on is a
// front. A front's endpoints sit in numbered slots of the map endpoints, the
// ones that get new flows in slots 0 to N-1 without a gap, and its entry in the
// map services sends it to the chain pick-N, which all fronts with N endpoints
// share. So an endpoint that is replaced costs one element, and one that comes
// or goes two or three, however many there are. Behind the N slots a UDP front
// keeps the endpoints that drain: no packet is sent there, but the aggregator,
// which flushes UDP flows to what left the map, sees that they are not gone.
//
// The package does no I/O, and does not judge Services: package model has done
// that. It escapes nothing, as all that it prints are addresses, numbers and
// the names of Kubernetes objects.
//
// # Concurrency
//
// A Renderer is not safe for concurrent use. The messages that it returns are
// not touched by it again.
package render
