// Package nri learns pods of this node from its container runtime, before the API reports
// them. It is a plugin of NRI, the Node Resource Interface of containerd and CRI-O.
//
// In come requests of the runtime on its socket, out go changes of the sandboxes of package
// model. Read plugin.go first; session.go is one connection, service.go has the requests,
// report.go the list that a connection begins with, and frame.go checks what arrives.
//
// A runtime reports a pod after it has its addresses, and starts the containers after all
// plugins have answered. The plugin answers once a commit has the pod, so the containers
// find the policies in force. It answers after at most Config.Wait, because a runtime starts
// one pod at a time, and disconnects a plugin that does not answer in time. It never
// refuses a pod.
//
// A pod counts until the runtime has stopped it. While there is no connection, what the
// runtime reported before stays, for Config.Forget: after that the runtime's pods may have
// ended, and their addresses be those of others, so only the API's pods count. After each
// connection the runtime reports everything that it knows. Pods of that report that have
// ended do not count.
//
// Runtimes with an NRI before v0.8 report no addresses. Then this package has no effect.
//
// # Concurrency
//
// Plugin.Run is the loop that connects. Requests arrive on goroutines of the connection. One
// goroutine of the session delivers the changes in their order, however long a delivery
// takes, and ends before the next session begins.
//
// # Errors
//
// Run returns no error: a runtime that is not there is logged, and tried again. A sandbox
// that is not valid is logged and ignored, as if the runtime had not reported it. A runtime
// that sends something else than NRI, more than it may, or no report, is disconnected.
package nri
