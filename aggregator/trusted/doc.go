// Package trusted makes sure that files and directories belong to the daemon alone.
//
// # Rules
//
// Root, the user of this process and the owner of "/" are trusted; in a user namespace the owner of "/" may
// be a user without a name. A directory is trusted if a trusted user owns it, no other user may write to
// it, and all directories above are trusted. A parent may be writable by everybody if it is sticky, like
// /tmp: other users can only add names there. A link on the way is followed if a trusted user made it; the
// last component must not be a link.
//
// Access control lists count as far as the group bits of the mode show them.
//
// # Errors
//
// [ErrUnsafe], [ErrLink], and the errors of the file system.
package trusted
