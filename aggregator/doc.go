// Package aggregator merges the fragments of all publishers into one ruleset and is the only writer to the
// kernel. Requests come in; transactions, answers and events go out.
//
// # A commit
//
//	Session.Push, Apply, Delete, Confirm     any goroutine
//	  | package admission: names, limits and rights; rules are compiled, elements packed
//	  v
//	package queue                            lanes of publishers, turns, pauses
//	  | turn: a batch, the updates of one commit
//	  v
//	writer (writer.go, commit.go)            one goroutine from here on
//	  |-- merger: owner of the fragment, limits of the publisher
//	  |-- merge.State: transition, then plan, without I/O
//	  |-- committer: stores the record if it changed, sends the transaction, accepts or rolls back
//	  |     refused: the update to blame is answered, the others are tried again, by halves if needed
//	  v
//	observers: status, metrics, history      before the answers
//	answers                                  durable fragments: once stored
//	observers: log, events, findings, flows  after the answers, without waiting
//
// Keeper, lifetimes, stagings and adoption (restore.go) also run on the writer's goroutine. Reads, Health
// and Life serve other goroutines.
//
// The package does not know gRPC, peer credentials (both in aggregator/server) or Services. It opens no
// socket: the kernel and conntrack come from Config.
//
// # The writer
//
// While the limiter has tokens (Config.Rate, Config.Burst), an update is committed at once. Under load the
// updates of an interval share a commit, except large ones (package queue). If the kernel refuses an
// update, its fragment keeps the last committed content, and the rest of the batch is committed at once.
// The writer also answers plans and reads between two commits.
//
// Revisions count commits and grow across restarts. A start continues with the stored revision or the Unix
// time in milliseconds, whichever is greater: losing the state directory does not set them back.
//
// # New chains
//
// In a hook, a packet keeps its generation of rules but finds new map elements. A new element could lead to
// a new chain, still empty for the packet. So if an update adds an element for a new chain to a map in
// force, the new chains are committed first (desired.Plan.Ahead). If the second transaction is refused, a
// third removes the first part. After a crash in between, the fragment's next snapshot removes or completes
// the part.
//
// # Large updates
//
// The kernel does not interrupt a transaction, and all other writers of nftables wait for it. So the new
// sets and maps of a large update are staged (staging.go). Each transaction has at most 16,384 elements and
// takes about 40 ms as predicted (package nft/cost). The sets stay unreferenced until the last transaction,
// so a packet sees either all of the update or the old content. After a crash the next start removes the
// sets missing from the record. Without a record they stay until their publisher sends the fragment again,
// or until weft cleanup: weft does not mark them, because the kernel could not remove the mark.
//
// Sets in force cannot be staged: rules refer to the old set, and a new set cannot have the same name. Nor
// can rules with anonymous sets, or maps to chains or objects. A batch of more than 100 ms is divided. An
// update over this limit, alone or in its later withdrawal, is refused if its publisher has limits.
//
// # Flows
//
// Package flows removes stale UDP conntrack entries and entries of affinity maps after the commit, without
// delaying the next one. Flows to a backend stay while a map with the conntrack role (a watched map) of any
// table leads their destination to the backend. All flows are compared with their backends once the
// publishers of watched maps are back after a start, and after each repair.
//
// # Cost
//
// The cost of an update depends on its changes, not on the rest of the ruleset. A commit does not read from
// the kernel. Only changes of declarations or references cost time for all chains and sets, and a synced
// write of the record.
//
// # Faults
//
// If the outcome of a batch is unknown or another process changed weft's tables, they are read again and
// repaired. If the kernel refuses to repair a table, the repair is tried again every Config.Retry.
//
// Damage of the state directory is never fatal: without the record, adopted elements have no fragment and
// stay until a publisher claims them. After a record could not be stored, the next start does not trust the
// older one.
//
// # Metrics
//
//	weft_commits_total            counter    batches committed
//	weft_commit_duration_seconds  histogram  by phase: wait (of the oldest update), build, kernel
//	weft_elements_changed_total   counter    elements of sets and maps, by change: added, deleted
//	weft_rules_changed_total      counter    rules, by change: added, deleted
//	weft_pending_updates          gauge      updates that wait for a commit
//	weft_rejections_total         counter    by publisher (64, then "(other)") and reason
//	weft_updates_dropped_total    counter    updates whose sender was gone before they were applied
//	weft_shadowed_elements        gauge      map elements that another fragment's value hides
//	weft_drift_repairs_total      counter    commits that repaired changes by other processes
//	weft_flows_flushed_total      counter    UDP conntrack entries removed
//	weft_flow_flush_errors_total  counter    failed attempts to remove them
//	weft_affinity_purged_total    counter    entries of affinity maps removed because no rule makes them
//	weft_affinity_errors_total    counter    failed attempts to remove them
//	weft_sessions                 gauge      open Publish streams
//	weft_revision                 gauge      number of the last commit
//	weft_state_errors_total       counter    failed reads and writes of the state directory, by file
//	weft_history_lost_total       counter    commits without an entry of their own in the history
//	weft_unrepaired_tables        gauge      tables that the kernel refuses to repair
//	weft_findings                 gauge      findings in the rules of fragments, by id (see package findings)
//	weft_aggregator_work_total    counter    work of the writer, by kind: keys (elements), rules,
//	                                         objects (chains and sets), dumps (of the kernel, whole), records
//
// The daemon adds weft_build_info and the process metrics.
//
// # Concurrency
//
// Aggregator and Session are safe for concurrent use. But the updates of a Session must come from one
// goroutine at a time, because their order matters. Run may be called once.
//
// # Errors
//
// A refused update is a *RejectedError. The comment of each method lists its other errors.
package aggregator
