// Package client is what a publisher imports to talk to weft's aggregator,
// together with the messages in aggregator/api/v1: frontends, agents and the
// command line use it.
//
// A first publisher dials, starts a session, and puts what it wants, as often as
// it likes. Put sends what is different from the last time:
//
//	c, err := client.Dial(ctx, client.Config{Publisher: "deny"})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//	s := c.Session(client.SessionConfig{})
//	defer s.Close()
//	for list := range lists {
//		_, err := s.Put(ctx, fragment(list))
//		if err != nil {
//			log.Printf("%+v", err)
//		}
//	}
//
// deploy/examples/publishers/deny is that program, complete.
//
// Fragments and patches come in; what goes out are the messages of aggregator/api/v1/PROTOCOL.md,
// and acknowledgements come back as revisions. Read session.go first, then
// update.go, which decides what is sent next, and acknowledge.go. Client has the
// calls that need no session (fragments.go, inspect.go, flows.go).
//
// A Session reconnects by itself: the first attempt is at once, the others at most
// half a second apart. It then sends each of its fragments as a snapshot, and
// tries again if that is rejected for a reason that can go away.
//
// The package does not validate rule text, elements or names: the aggregator does,
// and its answer names each violation. What cannot be encoded is answered with
// ErrInvalid or ErrTooLarge, and has no effect on other updates of the session.
//
// # Concurrency
//
// Client and Session are safe for concurrent use. A Session runs one goroutine
// that owns its stream, and one that reads from it; they call the functions of
// SessionConfig. While there is no stream, a Session holds one update of each
// fragment, except for those of StartPutContent.
//
// # Errors
//
// A rejected update is a *RejectedError with every violation. Its Error method
// returns one line; %+v adds the lines of text with a caret under the token. The
// other conditions that a caller can act on are the sentinels in errors.go. Match with
// errors.Is and errors.As. status.FromError returns the details of a call's error, such
// as google.rpc.RetryInfo.
package client
