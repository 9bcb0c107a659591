package source

import "context"

// unlisted returns the Custom resources of a user that the API server has not listed, with the
// reason, although it may have them.
func (u *user) unlisted() (names []string) {
	for _, w := range u.watches {
		select {
		case <-w.store.resolved:
			continue
		default:
		}
		if w.presence == Custom {
			name := w.key.resource.GroupResource().String()
			if err := w.failing.Load(); err != nil {
				name += " (" + (*err).Error() + ")"
			}
			names = append(names, name)
		}
	}
	return names
}

// followUnlisted tells the user when the API server has listed more of them, until there are none.
func (u *user) followUnlisted(ctx context.Context, unread []string) {
	for _, w := range u.watches {
		if len(unread) == 0 || w.presence != Custom {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-w.store.resolved:
			unread = u.unlisted()
			u.reportUnread(unread)
		}
	}
}
