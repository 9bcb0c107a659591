// Package source delivers Kubernetes objects to a process's frontends, from the API (Kube) or a directory
// of manifests (Manifests).
//
// It takes a Kind per resource and delivers batches of events to each user. Users of the same objects share
// one watch, and get separate copies. The package caches only object versions.
//
// # The API
//
// Lists are streamed if the server supports it (client-go's WatchListClient, Kubernetes 1.34), else paged. An
// object is deleted only if a watch or complete list says so. During an outage the process's watches try in
// turn. Afterwards they return at random within the outage's length, at least 1 s and at most a minute.
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
// Subscribe to a Source first, then call Run once. Calls to one user are sequential; a blocking user delays
// other users of the same watch.
//
// # Errors
//
// An error in an object or file is logged. Run fails only if it cannot watch at all.
package source
