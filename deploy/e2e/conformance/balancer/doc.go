// Package balancer gives Services of type LoadBalancer what a cloud gives them: an address of each
// family, and traffic to healthy nodes. Read balancer.go first.
//
// In come the Services and Nodes of a cluster. Out go status.loadBalancer and the clean-up finalizer
// of each Service, and through [Config.Route] the nodes that an address leads to:
//
//   - all Ready nodes if externalTrafficPolicy is Cluster,
//   - those whose health check node port answers 200 if it is Local,
//   - only the first of them if the Service has session affinity, because each proxy
//     remembers the clients of its own node only.
//
// It forwards no packets: addresses are virtual (ipMode VIP), so the proxy of the node translates
// them. A Service with a loadBalancerClass is left alone.
//
// # Concurrency
//
// Run is one goroutine that owns all state. It waits for the health checks of a round, which run
// at the same time.
//
// # Errors
//
// What fails in one round is logged and tried again in the next, a second later.
package balancer
