// Package aggregator merges the fragments of all publishers into one ruleset, and is its only writer to the
// kernel. Requests of publishers come in. Transactions of nft/kernel, answers and events go out.
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
//	  |-- desired.State: transition, then plan; both are pure
//	  |-- committer: stores the record if it changed, sends the transaction, accepts or rolls back
//	  |     refused: the update to blame is answered, the others are tried again, by halves if needed
//	  v
//	observers: status, metrics, history      before the answers
//	answers                                  durable fragments: once stored
//	observers: log, events, findings, flows  after the answers, never waiting
//
// Beside it, each on the writer's goroutine: keeper (keeper.go) keeps the kernel as the state says, lifetimes
// (lifetimes.go) submits withdrawals, stagings (staging.go) brings large sets ahead, adoption (restore.go)
// follows the content of the last run. Reads, Health and Life (reads.go, health.go) serve other goroutines.
//
// The limits of a publisher (package access) are checked twice: one update at admission, and the sum of all
// its fragments by the merger.
//
// The package does not know gRPC, credentials of peers (both are aggregator/server) or Services. It opens no
// socket: the kernel and conntrack are in Config.
//
// # The writer
//
// While the limiter has tokens, an update is committed at once. Under load the
// updates of one interval share a commit. Large updates have a commit to themselves
// and take turns with the others, so a publisher waits for one large update of
// others at most. An update that changes nothing is acknowledged with the last
// revision, without a commit. If the kernel refuses an update, its fragment keeps
// the last committed content, and the other updates of the batch are committed at
// once.
//
// Revisions count commits and grow across restarts. A start continues with the
// stored revision or with the Unix time in milliseconds, whichever is greater, so
// losing the state directory does not set them back.
//
// # New chains
//
// The kernel is atomic between packets, but not for one that is on its way through the rules:
// it keeps the generation of the rules that it found, and finds new elements. A new element of
// a map in force that leads to a new chain would lead it to nothing. So if an update has such
// an element, new chains are committed first, with all that only they need, and then the rest
// of the update in one transaction (desired.Plan.Ahead). Nothing refers to the first part before
// the second. If the second is refused, a third one removes the first part. If weft is killed between the two,
// the next start removes it.
//
// # Large updates
//
// The kernel carries out a transaction without interruption, and every other writer of
// nftables waits. So the new sets and maps of a large update are staged (staging.go):
// they are brought to the kernel in transactions of at most 16,384 elements, each of
// which takes about 40 ms as predicted (package nft/cost), and other updates are committed in between. Nothing
// refers to them until the last transaction, so packets see all of the update or nothing.
// If the update is refused, or its sender is gone, what was staged is removed. After a
// crash the next start removes it, if the state directory has the record: a staged set is
// one that is in no record. Without a record (and so without a state directory) it cannot be
// told from a set whose publisher will return, because the kernel keeps no mark of a
// set that could be taken off later. Then it stays, as all content that no publisher claims, until
// its publisher sends the fragment again and so claims it, or until weft cleanup. From
// Config.OwnTables it goes when their publisher is back.
//
// Sets in force cannot be staged: a change of theirs is one transaction, because a part of it must
// not be seen, and a set cannot be replaced by another of its name while rules refer to it. The same
// is true of rules with anonymous sets, and of maps that lead to chains or objects. If the kernel
// would take more than 100 ms for the transaction, its updates are committed one by one, and one
// that takes as long itself is refused if its publisher has limits (merger.go). So is one after
// which it would take as long to withdraw the fragment. The processor's time of each commit that is not small, or
// that follows a long one, is measured. If one took more than 20 ms, its publisher pauses
// for four times as long while others are active, so that it uses at most a fifth of the
// time, whatever its updates look like. A comparison with the kernel that a refused update has caused
// is measured too. After a second commit of more than 50 ms within
// 20 s, a publisher whose rights are limited pauses for 20 s: fewer than 1 in 100 updates
// of others wait for such a commit (package queue).
//
// # Flows
//
// UDP conntrack entries that a commit made stale are removed after it, by one
// goroutine that never delays the next commit. While a removal runs, later stale
// entries are collected. A removal reads the connection tracking table once for each
// family that lost something. A commit that removes no UDP backend, and gives no
// destination its first one, needs none. Flows to a backend stay while a watched map of
// another table, which can be another publisher's, leads their destination to it. After a start, all flows are compared with
// their backends once, when the publishers of watched maps are back, and again after
// a repair. If no map leads UDP anywhere, nothing is read.
//
// Affinity maps (MAP_ROLE_AFFINITY) are the only content from packets that weft
// changes: an entry that leads to a removed backend would be renewed by each packet
// that follows it. The state counts, for each value, the rules that make entries of
// it. When a commit removes the last rule of a value, that map is read after the
// commit, on a goroutine and a socket of their own, and the writer removes the
// entries of the value in batches of 4,096, between which other commits take their
// turn. After a start and after a repair, every affinity map is compared with the
// dump that was made anyway. A removal that fails is logged and retried.
//
// # Cost
//
// An update costs what it changes, whatever else exists. The work is counted
// (weft_aggregator_work_total), and a test compares it, the messages to the kernel
// and the allocations with 100 services and with 10,000. A commit reads nothing from
// the kernel. One thing costs the number of chains and sets: if declarations or
// references change, admission gets a new scope, and the record is stored, which takes
// a synced write of less than a millisecond. Changes of elements, and of rules that
// refer to the same objects, do neither. BenchmarkStage and BenchmarkPatch show the
// time of each step beside that of bare system calls.
//
// # Faults
//
// If the outcome of a batch is unknown, or another process changed the kernel, the
// kernel is read again, compared with the committed state, and repaired; watchers
// are notified. A table that the kernel refuses to repair is left out and tried again
// every Config.Retry. Other updates do not wait for it.
//
// The state directory has checksums. Damage is reported and never fatal: without the
// record nothing is withdrawn, because content that only it assigned has no owner
// until its publisher returns. A record that could not be stored is not trusted by
// the next start.
//
// # Upgrade
//
// A new binary replaces the old one in one of two ways. In both the tables stay in
// force while no process owns them or server.Hold does, publishers reconnect, and acknowledged updates are
// kept. Either the old process is stopped first and commits pending updates: systemd
// does this at a restart, and Kubernetes at the rolling update of a DaemonSet
// (maxSurge 0, the default). Or the new process is started with --standby: it waits
// for the socket and then for the tables, and has both a fraction of a second after
// the old process has ended or was killed.
//
// # Plans and reads
//
// Plan, GetTable, ListTables, Owner and Get are answered by the writer between two
// commits: it hands out what is asked for, sharing the elements, and the caller's goroutine sorts and converts
// it. A plan takes its turn like an update and costs the writer as much as a commit of
// the same content. The state is rolled back and the kernel drops the batch, so a plan
// leaves no trace.
//
// # Health
//
// Healthy reports whether updates are or will be committed. It is for the decision to
// restart the process. Converged is stricter, for the decision to send traffic to the
// node: after a restart it is false until the publishers from before are back, or
// Config.ReadyGrace is over. Missing, Drift and Stored return what is wrong although rules are
// in force; Missing also names a publisher whose session has ended, if its fragments are left.
//
// # Expiration
//
// A publisher may say when a fragment expires. The writer has the times of all
// fragments in order, and one timer. It withdraws an expired fragment in the same way
// as one of a session that has ended (lifetimes.go).
//
// # History
//
// Each commit is recorded by package history, with what is needed to go back. The writer only
// hands it over: the disk is written by another goroutine. After a start, fragments that are
// not there any more are recorded as lost.
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
// The daemon adds weft_build_info, and the process's own.
//
// # Concurrency
//
// Aggregator and Session are safe for concurrent use, except that the updates of one
// Session must come from one goroutine at a time, because their order matters. Run
// may be called once.
//
// # Errors
//
// A refused update is a *RejectedError. The other conditions are the sentinels in
// errors.go. Match with errors.Is and errors.As.
package aggregator
