package render

// Empty reports whether there is nothing to publish.
func (u *Update) Empty() bool { return u.Patch == nil && !u.Snapshot }
