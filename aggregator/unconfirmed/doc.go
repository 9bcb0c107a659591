// Package unconfirmed keeps what fragments had before updates that are to be confirmed, and has
// the updates taken back in time.
//
// In come a fragment's earlier content and a time, before the update is committed
// ([Keeper.Begin]), and later a confirmation ([Keeper.Confirm]). Out goes a call of
// Config.Revert for each update that was not confirmed, also after a restart. The package knows
// no rules and commits nothing. Read keeper.go first, then file.go.
//
// # States
//
// A fragment is reserved from Begin on. Nothing but its own update and what takes it back changes
// it until then. The reservation ends when its file is removed: by Confirm, by Cancel
// if the update was refused, or after Revert. So after a kill at any instant the fragment is
// either still reserved, and is taken back, or was confirmed.
//
// # Files
//
// Each fragment has a file in the directory "unconfirmed" of the state directory, which is
// written, synced and renamed before Begin returns. A file that cannot be read is renamed to
// *.damaged and logged: its update stays. The file of a later version is logged and left as it is.
//
// # Time
//
// The time runs on CLOCK_BOOTTIME, so that a step of the clock does not change it and a suspended
// machine does not stop it. After a reboot every update that was not confirmed is taken back.
//
// # Concurrency
//
// All methods may be called by any goroutine; Load comes first, and Run once.
//
// # Errors
//
// The errors are in keeper.go. Match with errors.Is.
package unconfirmed
