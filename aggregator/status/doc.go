// Package status keeps the status of fragments and publishers for readers.
//
// The aggregator reports commits, rejections and sessions. [Fragments] has the status of each fragment and
// the usage of each publisher as of the last commit. [Publishers] has the sessions and counts updates.
// Answers are messages of the protocol. Read fragments.go first, then publishers.go.
//
// # Concurrency
//
// All methods are safe for concurrent use. The aggregator's writer changes Fragments after a commit;
// readers delay it only while copying the list. Messages are shared and immutable.
package status
