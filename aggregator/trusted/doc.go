// Package trusted makes sure that files and directories belong to the daemon alone.
//
// In come paths of the operator: the state directory, the socket and its lock. Out come
// directories and files that no other user can change, or an [ErrUnsafe] that names the
// first place where another user could, and what to do. The package does not change what
// is there already, and does not know what the files are for.
//
// # What is trusted
//
// Root and the user of this process are trusted, and so is the owner of "/", who in a user
// namespace may be a user without a name. A directory is trusted if a trusted user owns it
// and no other user may write to it. All directories above it must be trusted too. One of
// them may be writable by everybody if it is sticky, as /tmp is: there other users can add
// names, but not replace those of the daemon. A link on the way to a directory is followed
// if a trusted user made it; the last component of a path must not be a link.
//
// Access control lists count as far as the mode of the file shows them, which has the
// greatest rights of the list as those of the group.
//
// # Errors
//
// [ErrUnsafe], [ErrLink], and those of the file system.
package trusted
