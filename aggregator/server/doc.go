// Package server answers gRPC calls for an aggregator on a Unix socket. The kernel identifies the
// peer.
//
// The package turns calls into calls of aggregator.Aggregator, and errors into gRPC codes (only in
// status.go). Package access decides who may call and under which names, for each call, and for
// open streams when the configuration changes. Package aggregator interprets updates. A panic in a
// handler ends one call, not the daemon.
//
// The service Flows (flows.go) bypasses the aggregator, over its own connection to the kernel. The
// service Tables (tables.go) relays tables of publishers' own rows to readers, and keeps no rows.
//
// # Limits of hostile callers
//
// gRPC's options limit one connection and one call. The rest is here. Each part names the tests
// that fail without it; tests of cmd/weft/attack are marked.
//
//   - receive.go, data that handlers have not received: TestUnfinishedCalls (attack),
//     TestUnfinishedMessages.
//   - decode.go, decoded requests (14 MiB can be 7 million tables): TestEmptyTables (attack),
//     TestTooLargeToDecode, TestLargeRequestsTakeTurns.
//   - inflight.go, updates of a stream: TestInFlight, TestUnfinishedSnapshotsAreBounded.
//   - connections.go: TestIdleConnections (attack), TestConnectionLimits,
//     TestUnidentifiedConnections, TestTooManyConnections, TestStrangersAreTold.
//   - streams.go, streams of a user over all connections: TestStreamLimits.
//   - reads.go and callturns.go, time of reads, plans and deletions of flows: TestReadLoops,
//     TestHistoryLoops (attack).
//
// # A new call
//
//  1. aggregator/api/v1/weft.proto, then "make generate"; its use in PROTOCOL.md.
//  2. Package aggregator. The call reads the writer's state with Aggregator.ask.
//  3. This package: inspect.go or methods.go; the pacer of policy.go in a call that counts as an
//     update.
//  4. aggregator/client, with the possible errors, and a verb in cmd/weft.
//  5. Aggregator.Features, if the call is optional.
//
// # Concurrency
//
// Server is safe for concurrent use. Every call runs on its own goroutine; a Publish stream has two
// more, for receiving and for acknowledgements.
//
// # Errors
//
// Errors of Listen name the socket's path and the remedy.
package server
