// Package unconfirmed keeps what fragments had before updates that are to be confirmed, and has
// the updates taken back in time.
//
// In come a fragment's earlier content and a time, before the update is committed
// ([Keeper.Begin]), and later a confirmation ([Keeper.Confirm]). Out goes a call of
// Config.Revert for each update that was not confirmed, also after a restart. The package knows
// no rules and commits nothing. Read keeper.go first, then stored.go.
//
// # States
//
// An update is committing from Reserve on, then waiting, and then confirming or reverting (keeper.go). An
// update that was confirmed, refused or taken back has no state. While it has one, only the update and the
// revert change the fragment.
//
//	Reserve, Begin, Committed   committing, then waiting
//	Cancel                      committing, then none
//	Confirm                     confirming, then none; waiting again if it cannot be removed from the store
//	Revert, or the time is over reverting, then none; waiting again if the content cannot be put back
//	restart                     waiting, if it is in the store
//
// An update whose revert fails is tried again after Config.Retry, and can be confirmed in between. The state
// ends with the removal from the store. If that fails after Cancel or a revert, the update does not
// wait any more (ended), and Run tries again to remove it. A process that ends before that leaves it to the
// next one, which takes the fragment back to that content once more, also over a later update.
//
// If the boot ID cannot be read, no time is over until it can be read.
//
// # Limits
//
// The stored content of a publisher counts as bytes that it holds (Config.Allow), also if it could not be removed. A
// publisher has at most 32 updates that wait, and 32 MiB of content.
//
// # Buckets
//
//	unconfirmed
//	  PUBLISHER/NAME
//	    update  JSON: the boot ID and the time at which the update is taken back
//	    before  weft.v1.Fragment: the earlier content; missing if there was none
//
// An entry is on the disk before Begin returns. If a damaged one is lost (package store), its update stays.
//
// # Time
//
// The time runs on CLOCK_BOOTTIME, so that a step of the clock does not change it and a suspended
// machine does not stop it. After a reboot every update that was not confirmed is taken back.
//
// # Concurrency
//
// All methods may be called by any goroutine; Load comes first, and Run once. Config.Allow must not call the Keeper.
//
// # Errors
//
// The errors are in keeper.go. Match with errors.Is.
package unconfirmed
