// Package nri learns local pods from the container runtime, before the API reports them. It is a
// plugin of NRI, the Node Resource Interface of containerd and CRI-O.
//
// It takes requests on the runtime's socket, and changes the sandboxes of package model. Read
// plugin.go first, then session.go (a connection), service.go (the requests), report.go (the list
// at the start of a connection) and frame.go (checks of the input).
//
// A runtime reports a pod with its addresses, and starts the containers after all plugins have
// answered. The plugin answers once a commit has the pod, so the containers start with their
// policies in force. It answers after at most Config.Wait, because a runtime starts one pod at a
// time and disconnects a late plugin. It never refuses a pod.
//
// A pod counts until the runtime has stopped it. After a disconnection the reported pods count for
// Config.Forget: later, other pods may have their addresses. At the start of each connection the
// runtime reports all its pods. Ended pods in this report do not count.
//
// Runtimes with an NRI before v0.8 report no addresses. Then this package has no effect.
//
// # Concurrency
//
// Plugin.Run is the loop that connects. Requests arrive on goroutines of the connection. One
// goroutine of the session delivers the changes in order, and ends before the next session begins.
//
// # Errors
//
// Run returns no error: it logs a missing runtime and retries. It logs and ignores an invalid
// sandbox. It disconnects a runtime that violates NRI, exceeds a limit, or does not report its
// pods.
package nri
