// Package source delivers objects of Kubernetes to the frontends of a process, from
// the Kubernetes API (Kube) or from a directory of manifests (Manifests).
//
// In come descriptions of kinds, one Kind for each resource that a user follows: the
// resource, its selectors, and the functions that decode an object to what the user
// keeps of it. Out go batches of events to each user. Read source.go and kind.go
// first; store.go decides what is new.
//
// Users that select the same objects of a resource share one watch. Each gets its own
// copy of the objects, and learns by itself when it knows everything (Synced). The
// package caches no objects: it remembers only the version of each object in the API.
// It does not judge what an object means. A user is a part of this process that
// subscribes, such as the Service frontend.
//
// # The API
//
// Lists are streamed if the server can do so (client-go's feature WatchListClient,
// Kubernetes 1.34), and paged otherwise. An object is deleted only if a watch or a
// complete list says so, however lists and watches end. Each watch waits between two
// attempts as in client-go, up to a minute, so that the nodes of a cluster do not ask a
// server that comes back all at once. While the server does not answer, the watches of the
// process try in turn, one at a time, with the same waits. Once it answers one of them, the
// others try again, each at a random time within as long as the outage took (1 s at least, a minute at most). If
// the server has started anew it knows no resource version of before: the first watch finds
// that out, and the others list at once. A restarted process whose rules are in force begins at
// a random moment within StartSpread. There is no periodic resync.
//
// A user of a kind with many fields that it does not read can read the encoded object itself
// (Kind.Unmarshal): see message.go.
//
// A resource that is not Required may be unknown to the server, or forbidden. Its users
// are synced without it, and get its objects when it appears.
//
// # Manifests
//
// A directory applies the selectors of a kind, as the API server does. A file that is
// not valid keeps its last valid state in force, and the log names the line.
//
// # Concurrency
//
// Subscribe to a Source first, then call Run once. Run returns when its context ends or
// the source cannot work at all, and leaves no goroutine running. The functions of one
// user are called one at a time; a user that blocks delays the users of the same watch.
//
// # Errors
//
// An error in one object or file is logged, and its last valid state stays. Run's error
// means that there is nothing to watch, such as a directory that does not exist.
package source
