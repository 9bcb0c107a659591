package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/aggregator/client"
)

// confirmKills is how often TestConfirmSurvivesKills kills weft. 100 take four minutes:
//
//	go test -count=1 -v -run TestConfirmSurvivesKills -timeout 0 ./cmd/weft -confirm.kills 100
var confirmKills = flag.Int("confirm.kills", 4, "how often TestConfirmSurvivesKills kills weft")

// TestConfirmSurvivesKills kills weft at random instants of an update that is to be confirmed. What was
// confirmed stays, what was not is taken back, and nothing else is ever in force.
func TestConfirmSurvivesKills(t *testing.T) {
	if !inOwnNamespace(t, fmt.Sprintf("-confirm.kills=%d", *confirmKills)) {
		return
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "run", "weft.sock")
	start := func() *weft {
		return startWeft(t, "aggregator", "--socket", socket, "--state-dir", filepath.Join(dir, "state"), "--metrics-bind-address=", "--healthz-bind-address=")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(*confirmKills)*patience)
	defer cancel()
	outcomes := map[string]int{}
	w := start()
	for i := range *confirmKills {
		before, after := "192.0.2."+strconv.Itoa(i%200+1), "198.51.100."+strconv.Itoa(i%200+1)
		c := dialWeft(t, ctx, socket)
		if _, err := c.Apply(ctx, listOf(before)); err != nil {
			t.Fatal(err)
		}
		// Half of the kills are during the update and its confirmation, which take milliseconds, half
		// until it has been taken back.
		most, confirm := 15*time.Millisecond, i%2 == 0
		if i%4 >= 2 {
			most = 1100 * time.Millisecond
		}
		delay := rand.N(most) //nolint:gosec // a test
		killed := make(chan error, 1)
		time.AfterFunc(delay, func() { killed <- w.cmd.Process.Kill() })
		asked, confirmed := false, false
		_, _, err := c.ApplyUnconfirmed(ctx, listOf(after), time.Second)
		if err == nil && confirm {
			asked = true
			_, err := c.Confirm(ctx, "", "list", false)
			confirmed = err == nil
		}
		must(t, <-killed)
		<-w.done
		_ = c.Close()
		w = start()
		c = dialWeft(t, ctx, socket)
		decided(t, ctx, c)
		_ = c.Close()
		got := inForce(t)
		outcome := "taken back"
		if got == after {
			outcome = "confirmed"
		}
		outcomes[outcome]++
		switch {
		case got != before && got != after, confirmed && got != after, !asked && got != before:
			t.Fatalf("kill %d after %v, confirmation sent %v, acknowledged %v: %q is in force; before the update it was %s, in it %s\n%s",
				i, delay, asked, confirmed, got, before, after, w.log.String())
		}
	}
	t.Logf("%d kills: %d updates confirmed, %d taken back, 0 anything else", *confirmKills, outcomes["confirmed"], outcomes["taken back"])
}

func listOf(element string) *weftv1.Fragment {
	return &weftv1.Fragment{Name: "list", Nft: fmt.Sprintf("table inet confirm { set s { type ipv4_addr; elements = { %s } }; }", element)}
}

// dialWeft connects to a weft that starts.
func dialWeft(t *testing.T, ctx context.Context, socket string) *client.Client {
	t.Helper()
	c, err := client.Dial(ctx, client.Config{Socket: socket, DialTimeout: patience})
	must(t, err)
	return c
}

// decided waits until the fragment does not wait for a confirmation.
func decided(t *testing.T, ctx context.Context, c *client.Client) {
	t.Helper()
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		got, err := c.Get(ctx, "", "list") // it waits for the start
		switch {
		case ctx.Err() != nil:
			t.Fatal(err)
		case err == nil && !got.GetStatus().GetRevertTime().IsValid():
			return
		}
	}
}

// inForce returns the element in the kernel.
func inForce(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "nft", "list", "set", "inet", "confirm", "s").CombinedOutput()
	if err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
	_, rest, _ := strings.Cut(string(out), "elements = { ")
	element, _, _ := strings.Cut(rest, " }")
	return element
}
