// Package aggregator merges the fragments of all publishers into one ruleset and is the only writer to the
// kernel. Publishers send requests; the package sends transactions to nft/kernel, and answers and events to
// its callers.
//
// # A commit
//
//	Session.Push, Apply, Delete, Confirm     any goroutine
//	  | package admission: names, limits and rights; rules are compiled, elements packed
//	  v
//	package queue                            lanes of publishers, turns, pauses
//	  | turn: the updates of one commit
//	  v
//	writer (writer.go, commit.go)            one goroutine from here on
//	  |-- merger: owner of the fragment, limits of the publisher
//	  |-- merge.State: transition, then plan; both are pure
//	  |-- committer: stores the record if it changed, sends the transaction, accepts or rolls back
//	  |     refused: the update to blame is answered, the others are tried again, by halves if needed
//	  v
//	observers: status, metrics, history      before the answers
//	answers                                  durable fragments: once stored
//	observers: log, events, findings, flows  after the answers, never waiting
//
// Keeper, lifetimes, stagings and adoption (restore.go) also run on the writer's goroutine. Reads, Health
// and Life serve other goroutines.
//
// The package does not know gRPC, peer credentials (both in aggregator/server) or Services. It opens no
// socket: the kernel and conntrack come from Config.
//
// # The writer
//
// While the limiter has tokens, an update is committed at once. Under load the updates of one interval
// share a commit. Large updates are committed alone and take turns with the others (package queue). If the
// kernel refuses an update, its fragment keeps the last committed content, and the rest of the batch is
// committed at once. The writer also answers Plan and reads between two commits.
//
// Revisions count commits and grow across restarts. A start continues with the stored revision or the Unix
// time in milliseconds, whichever is greater, so losing the state directory does not set them back.
//
// # New chains
//
// The kernel switches rules atomically between packets. But a packet already in the rules keeps its
// generation of rules and still finds new map elements. A new element could then lead it to an invisible
// chain. So if an update adds an element for a new chain to a map in force, the new chains are committed
// first (desired.Plan.Ahead). If the second transaction is refused, a third removes the first part. After a
// crash in between, the next start removes it.
//
// # Large updates
//
// The kernel does not interrupt a transaction, and all other writers of nftables wait for it. So the new
// sets and maps of a large update are staged (staging.go), in transactions of at most 16,384 elements and
// about 40 ms as predicted (package nft/cost). They stay unreferenced until the last transaction, so a
// packet sees either all of the update or the old content. After a crash the next start removes the sets
// missing from the record. Without a record a staged set stays until its publisher sends the fragment
// again, or until weft cleanup: the kernel has no removable mark for sets. Staged sets in Config.OwnTables
// are removed when the publisher of the table is back.
//
// Sets in force cannot be staged: a set cannot be replaced by another of the same name while rules refer to
// it. The same applies to rules with anonymous sets and to maps to chains or objects. The updates of a
// transaction of more than 100 ms are committed one by one. An update over this limit, alone or in its later
// withdrawal, is refused if its publisher has limits (merger.go).
//
// # Flows
//
// Package flows removes stale UDP conntrack entries and entries of affinity maps (MAP_ROLE_AFFINITY) after
// the commit; it never delays the next one. Flows to a backend stay while a watched map of any table still
// leads their destination to it. All flows are compared with their backends once after a start, when the
// publishers of watched maps are back, and after each repair.
//
// # Cost
//
// The cost of an update depends on its changes, not on the rest of the ruleset. The work is counted
// (weft_aggregator_work_total); a test compares it at 100 and at 10,000 services. A commit does not read
// from the kernel. Only changes of declarations or references cost time for all chains and sets, and a
// synced write of the record.
//
// # Faults
//
// If the outcome of a batch is unknown or another process changed the kernel, the kernel is read again,
// compared with the committed state and repaired; watchers are notified. A table that the kernel refuses to
// repair is left out and retried every Config.Retry.
//
// Damage of the state directory is reported but never fatal: without the record, content known only from it
// stays until its publisher returns. After a record could not be stored, the next start does not trust it.
//
// # Upgrade
//
// Either the old process stops first and commits pending updates, or the new one waits with --standby for
// the socket and then for the tables. In both cases tables stay in force while unowned or held by
// server.Hold, and acknowledged updates are kept.
//
// # Health
//
// Use Healthy to decide whether to restart the process, and Converged to decide whether to send traffic to
// the node. Missing, Drift and Stored report problems that exist although rules are in force.
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
//	weft_state_errors_total       counter    files of the state directory that failed, by kind
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
// Aggregator and Session are safe for concurrent use, but the updates of one Session must come from one
// goroutine at a time, because their order matters. Run may be called once.
//
// # Errors
//
// A refused update is a *RejectedError. The other errors are the sentinels in errors.go.
package aggregator
