// Package balancer acts as a cloud for Services of type LoadBalancer: it assigns an address of each family,
// and routes traffic to healthy nodes. Read balancer.go first.
//
// In come the Services and Nodes of a cluster. Out go status.loadBalancer and the clean-up finalizer of each
// Service, and through [Config.Route] the nodes of an address:
//
//   - all Ready nodes if externalTrafficPolicy is Cluster,
//   - nodes whose health check node port answers 200 if it is Local,
//   - only the first node if the Service has session affinity, because each proxy remembers only its own
//     node's clients.
//
// Addresses are virtual (ipMode VIP): the node's proxy translates them. A Service with a loadBalancerClass is
// ignored.
//
// # Concurrency
//
// Run is one goroutine that owns all state. The health checks of a round run at the same time.
//
// # Errors
//
// Failures of a round are logged and retried in the next round, a second later.
package balancer
