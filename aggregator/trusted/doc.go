// Package trusted makes sure that files and directories belong to the daemon alone.
//
// Paths of the operator come in: the state directory, the socket and its lock. Directories and files
// protected from other users go out, or an [ErrUnsafe] that names the first unsafe place and the remedy.
// The package neither changes existing files nor knows their purpose.
//
// # What is trusted
//
// Root, the user of this process and the owner of "/" are trusted; in a user namespace the owner of "/" may
// be a user without a name. A directory is trusted if a trusted user owns it, no other user may write to
// it, and all directories above are trusted. A parent may be writable by everybody if it is sticky, like
// /tmp: other users can add names there, but not replace the daemon's. A link on the way to a directory is
// followed if a trusted user made it; the last component must not be a link.
//
// Access control lists count as far as the file mode shows them: the group bits hold the greatest rights of
// the list.
//
// # Errors
//
// [ErrUnsafe], [ErrLink], and those of the file system.
package trusted
