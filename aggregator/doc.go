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
// Other parts run on the writer's goroutine: keeper (keeper.go) keeps the kernel equal to the state,
// lifetimes (lifetimes.go) submits withdrawals, stagings (staging.go) stages large sets, and adoption
// (restore.go) tracks the content of the last run. Reads, Health and Life (reads.go, health.go) serve other
// goroutines.
//
// The limits of a publisher (package access) are checked twice: admission checks one update, the merger the
// sum of all fragments.
//
// The package does not know gRPC, peer credentials (both in aggregator/server) or Services. It opens no
// socket: the kernel and conntrack come from Config.
//
// # The writer
//
// While the limiter has tokens, an update is committed at once. Under load the updates of one interval
// share a commit. Large updates are committed alone and take turns with the others, so a publisher waits
// for at most one large update of others. An update without changes is acknowledged with the last revision
// and without a commit. If the kernel refuses an update, its fragment keeps the last committed content, and
// the rest of the batch is committed at once.
//
// Revisions count commits and grow across restarts. A start continues with the stored revision or the Unix
// time in milliseconds, whichever is greater, so losing the state directory does not set them back.
//
// # New chains
//
// The kernel switches rules atomically between packets. But a packet already traversing the rules keeps its
// generation of rules and still finds new map elements. A new element could then lead the packet to a chain
// that it cannot see. So if an update adds an element that leads to a new chain to a map in force, the new
// chains and their dependencies are committed first, and the rest in a second transaction
// (desired.Plan.Ahead). Until the second, the first part is unreferenced. If the second is refused, a third
// transaction removes the first part. If weft is killed in between, the next start removes it.
//
// # Large updates
//
// The kernel does not interrupt a transaction, and all other writers of nftables wait for it. So the new
// sets and maps of a large update are staged (staging.go): added in transactions of at most 16,384
// elements, each of about 40 ms as predicted (package nft/cost), with other commits in between. They stay
// unreferenced until the last transaction, so a packet sees either all of the update or the old content. If
// the update is refused or its sender is gone, staged sets are removed. After a crash the next start
// removes staged sets: they are the sets missing from the record. Without a record (or a state directory) a
// staged set cannot be told from a set whose publisher will return, because the kernel has no removable
// mark for sets. It then stays until its publisher sends the fragment again, or until weft cleanup. Staged
// sets in Config.OwnTables are removed when the publisher of the table is back.
//
// Sets in force cannot be staged: their change must be visible at once, and a set cannot be replaced by
// another of the same name while rules refer to it. The same applies to rules with anonymous sets and to
// maps that lead to chains or objects. If the transaction would take more than 100 ms of kernel time, its
// updates are committed one by one. An update that alone exceeds this limit, or after which the withdrawal
// of its fragment would, is refused if its publisher has limits (merger.go). CPU time is measured for each
// commit that is large or follows a long one. After more than 20 ms the publisher pauses four times as long
// while others are active, and so uses at most a fifth of the time. Kernel comparisons caused by a refused
// update count too. After a second commit of more than 50 ms within 20 s, a publisher with limited rights
// pauses for 20 s: fewer than 1 in 100 updates of others wait for such a commit (package queue).
//
// # Flows
//
// One goroutine removes UDP conntrack entries after the commit that made them stale; it never delays the
// next commit. Entries that become stale during a removal are collected for the next one. A removal reads
// the conntrack table once per affected family. It is skipped if the commit neither removes a UDP backend
// nor gives a destination its first one. Flows to a backend stay while a watched map of any table still
// leads their destination to it. All flows are compared with their backends once after a start, when the
// publishers of watched maps are back, and after each repair. If no map leads UDP anywhere, the conntrack
// table is not read.
//
// Affinity maps (MAP_ROLE_AFFINITY) are the only content from packets that weft changes, because packets
// that follow an entry to a removed backend would renew it. The state counts, per value, the rules that
// create entries with this value. After a commit that removes the last such rule, the map is read on a
// separate goroutine and socket. The writer removes the entries in batches of 4,096, with other commits in
// between. After a start or repair, all affinity maps are compared with the existing dump. Failed removals
// are logged and retried.
//
// # Cost
//
// The cost of an update depends on its changes, not on the rest of the ruleset. The work is counted
// (weft_aggregator_work_total); a test compares it, the kernel messages and the allocations at 100 and at
// 10,000 services. A commit does not read from the kernel. Only changes of declarations or references cost
// time for all chains and sets: admission gets a new scope, and the record is stored with a synced write of
// less than a millisecond. BenchmarkStage and BenchmarkPatch compare each step with bare system calls.
//
// # Faults
//
// If the outcome of a batch is unknown or another process changed the kernel, the kernel is read again,
// compared with the committed state and repaired; watchers are notified. A table that the kernel refuses to
// repair is left out and retried every Config.Retry. Other updates do not wait for it.
//
// The state directory has checksums. Damage is reported but never fatal: without the record, content known
// only from it stays until its publisher returns. After a record could not be stored, the next start does
// not trust it.
//
// # Upgrade
//
// A new binary can replace the old one in two ways. In both, tables stay in force while unowned or held by
// server.Hold, publishers reconnect, and acknowledged updates are kept. Either the old process is stopped
// first and commits pending updates, as systemd does at a restart and Kubernetes at a rolling update of a
// DaemonSet (maxSurge 0, the default). Or the new process starts with --standby and waits for the socket,
// then for the tables. It gets both a fraction of a second after the old process has ended.
//
// # Plans and reads
//
// The writer answers Plan, GetTable, ListTables, Owner and Get between two commits. It hands out shared
// elements; the caller's goroutine sorts and converts them. A plan takes its turn like an update and costs
// the writer as much as the commit would. The state is rolled back and the kernel drops the batch, so a
// plan leaves no trace.
//
// # Health
//
// Healthy reports whether updates are or will be committed: use it to decide whether to restart the
// process. Converged is stricter: use it to decide whether to send traffic to the node. After a restart it
// fails until the earlier publishers are back or Config.ReadyGrace is over. Missing, Drift and Stored
// report problems that exist although rules are in force. Missing also names publishers that left fragments
// behind at the end of their session.
//
// # Expiration
//
// A publisher may set an expiration time for a fragment. The writer keeps these times in order, with one
// timer, and withdraws an expired fragment like the fragments of an ended session (lifetimes.go).
//
// # History
//
// Package history records each commit with the content needed to go back. Its own goroutine writes to disk.
// After a start, missing fragments are recorded as lost.
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
// A refused update is a *RejectedError. The other conditions are the sentinels in errors.go. Match with
// errors.Is and errors.As.
package aggregator
