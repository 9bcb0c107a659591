package statuspage

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-proxy/weft/cmd/weft/sockdiag"
)

// askers returns a page whose askers say who they are, and the function that answers.
func askers(answer http.HandlerFunc) (*Page, http.HandlerFunc) {
	p := New(Config{})
	p.asker = func(r *http.Request) string { return r.URL.Query().Get("as") }
	return p, p.question(answer)
}

func ask(handler http.HandlerFunc, as string) int {
	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/?as="+as, nil))
	return w.Code
}

// TestGreedyAsker has one user ask questions of five seconds without end, on many connections, for five minutes: another one
// is never refused, waits for one question at most, and has most of the time.
func TestGreedyAsker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const question = 5 * time.Second
		var mu sync.Mutex
		answered, refused := map[string]int{}, 0
		_, handler := askers(func(_ http.ResponseWriter, r *http.Request) {
			<-time.After(question)
			mu.Lock()
			defer mu.Unlock()
			answered[r.URL.Query().Get("as")]++
		})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		for range 20 {
			go func() {
				for ctx.Err() == nil {
					if ask(handler, "greedy") == http.StatusTooManyRequests {
						mu.Lock()
						refused++
						mu.Unlock()
						<-time.After(100 * time.Millisecond)
					}
				}
			}()
		}
		for ctx.Err() == nil {
			<-time.After(4 * question)
			began := time.Now()
			if code := ask(handler, "other"); code != http.StatusOK || time.Since(began) > 2*question {
				t.Fatalf("the other one is answered with %d after %v", code, time.Since(began))
			}
		}
		<-time.After(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if other := answered["other"]; other < 10 || refused == 0 || answered["greedy"] > 5*60/15+2 {
			t.Errorf("answered %v, and refused %d", answered, refused)
		}
	})
}

// TestSlowReader has an asker who does not read a large answer: others are answered.
func TestSlowReader(t *testing.T) {
	large := strings.Repeat("x", 64<<20)
	_, handler := askers(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("as") == "slow" {
			_, _ = io.WriteString(w, large)
		}
	})
	s := httptest.NewServer(handler)
	defer s.Close()
	for range 2 {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = fmt.Fprint(conn, "GET /?as=slow HTTP/1.1\r\nHost: weft\r\n\r\n")
		if _, err := conn.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	client := http.Client{Timeout: 3 * time.Minute}
	answer, err := client.Get(s.URL + "/?as=other")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("another asker: %v, %v", answer, err)
	}
	_ = answer.Body.Close()
}

// TestAskerIsTheUser asks the kernel for the user of a connection, over IPv4 and, if there is, IPv6.
func TestAskerIsTheUser(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0", "[::]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue
		}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, asker(r)) }))
		s.Listener = l
		s.Start()
		defer s.Close()
		answer, err := s.Client().Get(fmt.Sprintf("http://127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port)) //nolint:forcetypeassert // see Listen
		if address == "[::1]:0" {
			answer, err = s.Client().Get(s.URL)
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || string(body) != fmt.Sprintf("user %d", os.Getuid()) {
			_, reason := sockdiag.User("127.0.0.1:1", "127.0.0.1:2")
			t.Errorf("%s: asked by %q, error %v (%v), want uid %d", address, body, err, reason, os.Getuid())
		}
	}
	if _, err := sockdiag.User("127.0.0.1:1", "127.0.0.1:2"); err == nil {
		t.Error("a connection that does not exist has a user")
	}
}
