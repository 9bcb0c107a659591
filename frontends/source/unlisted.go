package source

import "context"

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
