// Package unconfirmed stores the content of fragments before updates that need a confirmation, and
// calls Config.Revert for unconfirmed updates in time, also after a restart. It commits no update.
//
// # States
//
// While an update has a state, only it and its revert change the fragment.
//
//	Reserve, Begin, Committed   committing, then waiting
//	Cancel                      committing, then gone
//	Confirm                     confirming, then gone; waiting again if it cannot be removed from the store
//	Revert, or the end of time  reverting, then gone; waiting again if the content cannot be put back
//	restart                     waiting, if it is in the store
//
// A failed revert is tried again after Config.Retry; meanwhile the update can be confirmed. If the
// removal from the store fails after Cancel or a revert, the state is ended, and Run (package
// retry) tries again. Until then a restart reverts the fragment once more, also over a later
// update.
//
// # Limits
//
// Stored content counts among its publisher's bytes (Config.Allow). keeper.go has the limits.
//
// # Buckets
//
//	unconfirmed
//	  PUBLISHER/NAME
//	    update  JSON: the boot ID and the time at which the update is taken back
//	    before  weft.v1.Fragment: the earlier content; missing if there was no fragment
//
// An entry is on the disk before Begin returns. The update of a damaged entry stays.
//
// # Time
//
// Times are on CLOCK_BOOTTIME. After a reboot every unconfirmed update is taken back.
//
// # Concurrency
//
// Load comes first, Run is called once; any goroutine may call other methods. Config.Allow must not
// call the Keeper.
//
// # Errors
//
// The errors are in keeper.go.
package unconfirmed
