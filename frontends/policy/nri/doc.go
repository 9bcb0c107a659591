// Package nri learns pods of this node from its container runtime, before the API reports them. It
// is a plugin of NRI, the Node Resource Interface of containerd and CRI-O.
//
// It takes requests of the runtime on its socket, and changes the sandboxes of package model. Read
// plugin.go first; session.go is a connection, service.go has the requests, report.go the list at
// the start of a connection, and frame.go checks the input.
//
// A runtime reports a pod with its addresses, and starts the containers after all plugins have
// answered. The plugin answers once a commit has the pod, so the containers start with their
// policies in force. It answers after at most Config.Wait, because a runtime starts one pod at a
// time and disconnects a late plugin. It never refuses a pod.
//
// A pod counts until the runtime has stopped it. After a disconnection the reported pods stay for
// Config.Forget. Then they may have ended and other pods may have their addresses, so only the
// API's pods count. At the start of each connection the runtime reports all its pods. Ended pods in
// this report do not count.
//
// Runtimes with an NRI before v0.8 report no addresses. Then this package has no effect.
//
// # Concurrency
//
// Plugin.Run is the loop that connects. Requests arrive on goroutines of the connection. One
// goroutine of the session delivers the changes in order, regardless of the duration, and ends
// before the next session begins.
//
// # Errors
//
// Run returns no error: it logs a missing runtime and retries. An invalid sandbox is logged and
// ignored. A runtime is disconnected if it violates NRI, exceeds a limit, or does not report its
// pods.
package nri
