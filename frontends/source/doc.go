// Package source delivers Kubernetes objects to a process's frontends, from the API (Kube) or a directory
// of manifests (Manifests).
//
// It takes a Kind per resource, with selectors and decoding functions, and delivers batches of events to each
// user. A user is a subscriber in this process, such as the Service frontend. Users of the same objects share
// one watch, and get separate copies and Synced calls. The package caches only object versions and does not
// interpret objects.
//
// # The API
//
// Lists are streamed if the server supports it (client-go's WatchListClient, Kubernetes 1.34), else paged. An
// object is deleted only if a watch or complete list says so. During an outage the process's watches try in
// turn, with client-go's waits. Afterwards they return at random within the outage's length, at least 1 s and
// at most a minute. A restarted server knows no earlier resource version: the first watch detects this, and
// the others list at once. There is no periodic resync.
//
// A user of few fields can read the encoded object itself (Kind.Unmarshal).
//
// A resource that is not Required may be unknown or forbidden. Its users are synced without it, and get its
// objects once it appears.
//
// # Manifests
//
// A directory applies a kind's selectors like the API server. An invalid file keeps its last valid state.
//
// # Concurrency
//
// Subscribe to a Source first, then call Run once. Run returns after its goroutines have ended. Calls to one
// user are sequential; a blocking user delays other users of the same watch.
//
// # Errors
//
// An error in an object or file is logged. Run fails only if it cannot watch at all, such as for a missing
// directory.
package source
