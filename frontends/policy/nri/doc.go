// Package nri learns local pods from the container runtime, before the API reports them. It is a
// plugin of NRI, the Node Resource Interface of containerd and CRI-O.
//
// A runtime starts the containers of a pod after all plugins have answered. The plugin answers once
// a commit has the pod, but after at most Config.Wait, because a runtime starts one pod at a time
// and disconnects a late plugin. It never refuses a pod.
//
// A pod counts until the runtime has stopped it. After a disconnection it counts for Config.Forget:
// later, other pods may have its addresses. At the start of each connection the runtime reports all
// its pods.
//
// Runtimes with an NRI before v0.8 report no addresses. Then this package has no effect.
//
// # Concurrency
//
// Requests arrive on goroutines of the connection. One goroutine of the session delivers the
// changes in order, and ends before the next session begins.
//
// # Errors
//
// Run logs errors and connects again.
package nri
