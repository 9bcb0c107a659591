// Package client connects publishers to weft's aggregator. Frontends, agents and the command line
// import it, with the messages in aggregator/api/v1.
//
// A publisher dials, starts a session, and puts its fragment any number of times. Put sends the
// difference from the last Put:
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
// deploy/examples/publishers/deny is the complete program.
//
// The protocol is aggregator/api/v1/PROTOCOL.md. Read session.go first, then outbox.go, which
// chooses the next message, and acknowledge.go. The outbox alone knows which fragments need a
// snapshot: after a reconnect, a request of the aggregator, or a rejected change with
// SessionConfig.Snapshot.
//
// The other methods of Client are single calls.
//
// An update that cannot be encoded gets ErrInvalid or ErrTooLarge, without effect on other updates
// of the session.
//
// # Concurrency
//
// Client and Session are safe for concurrent use. A Session runs one goroutine for its stream, and
// one to receive; they call the functions of SessionConfig. Without a stream, a Session holds one
// update of each fragment, except for fragments of StartPutContent.
//
// # Errors
//
// A rejected update is a *RejectedError; %+v formats every violation. Other conditions are the
// sentinels in errors.go. errors.ErrUnsupported means an aggregator without the call, such as an
// older one. status.FromError returns the details of a call's error, such as
// google.rpc.RetryInfo.
package client
