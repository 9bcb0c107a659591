package knft_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"sigs.k8s.io/knftables"

	"github.com/weft-proxy/weft/aggregator/testing/aggregatortest"
	"github.com/weft-proxy/weft/knft"
)

// wanderer makes random transactions with few names, so that they often meet existing objects.
type wanderer struct {
	*rand.Rand
	serial int
	// gone is true once rules may have been deleted: nft(8) accepts the handle or index of a rule
	// deleted in the same transaction as a place, and weft does not.
	gone bool
	// placed is true once a rule is next to another: if that other rule is replaced in the same
	// transaction, nft 1.0.6 puts the first at the end.
	placed bool
}

// universe has chains and sets that rules refer to. nft(8) rejects even a temporary deletion of a used
// object; weft checks only the end.
var universe = add(
	table(), chain("a"), chain("b"), set("used", "ipv4_addr"), mapping("ways", "ipv4_addr : verdict"), mapping("numbers", "ipv4_addr : inet_service"),
)

func (w *wanderer) pick(names ...string) string { return names[w.IntN(len(names))] }

func (w *wanderer) text() string {
	switch w.IntN(24) {
	case 0:
		return "jump gone"
	case 1:
		return "ip saddr @absent drop"
	}
	return w.pick("ip saddr @used drop", "jump b", "tcp dport 80 accept", "ip daddr vmap @ways", "counter", fmt.Sprintf("ip ttl %d accept", w.IntN(200)))
}

func (w *wanderer) rule() *knftables.Rule {
	w.serial++
	return noted(w.pick("a", "a", "a", "a", "a", "a", "a", "spare"), w.text(), strconv.Itoa(w.serial))
}

func (w *wanderer) element() *knftables.Element {
	e := &knftables.Element{Key: []string{fmt.Sprintf("10.0.0.%d", w.IntN(6))}}
	switch w.IntN(5) {
	case 0, 1:
		e.Set = w.pick("used", "used", "extra")
	case 2, 3:
		e.Map, e.Value = "numbers", []string{w.pick("80", "81", "http")}
	default:
		e.Map, e.Value = "ways", []string{w.pick("accept", "goto a", "goto b")}
	}
	if w.IntN(3) == 0 {
		e.Comment = ptr(w.pick("x", "y"))
	}
	return e
}

// step is a random one. handles are chain a's, in order.
func (w *wanderer) step(handles []int) step {
	extra, spare := set("extra", w.pick("ipv4_addr", "ipv4_addr", "ipv6_addr")), chain("spare")
	if w.IntN(3) == 0 {
		spare = base("spare", knftables.FilterType, knftables.ForwardHook, knftables.FilterPriority)
		spare.Policy = ptr([]knftables.BaseChainPolicy{knftables.AcceptPolicy, knftables.DropPolicy}[w.IntN(2)])
	}
	r, e := w.rule(), w.element()
	switch n := w.IntN(20); n {
	case 0, 1, 2, 3:
		return []step{create(spare), add(spare), remove(chain("spare")), destroy(chain("spare"))}[n]
	case 4, 5, 6, 7:
		return []step{add(extra), create(extra), remove(set("extra", "")), flush(set(w.pick("used", "extra"), ""))}[n-4]
	case 8, 9, 10, 11:
		return []step{remove(e), create(e), add(e), add(e)}[n-8]
	case 12:
		return insert(r)
	case 13, 14:
		w.place(r, handles)
		return add(r)
	case 15:
		w.place(r, handles)
		return insert(r)
	case 16:
		r = &knftables.Rule{Chain: "a", Handle: w.handle(handles)}
		w.gone = true
		return remove(r)
	case 17:
		if r.Handle = w.handle(handles); w.placed {
			r.Handle = ptr(1 << 20)
		}
		w.gone = true
		return replace(r)
	case 18:
		w.gone = true
		return flush(chain(w.pick("a", "spare")))
	default:
		return add(r)
	}
}

func (w *wanderer) place(r *knftables.Rule, handles []int) {
	w.placed = true
	switch n := w.IntN(3); {
	case w.gone:
	case n == 0:
		r.Index = ptr(w.IntN(len(handles) + 1))
	case n == 1:
		r.Handle = w.handle(handles)
	}
}

// handle returns an existing or a missing handle.
func (w *wanderer) handle(handles []int) *int {
	if len(handles) == 0 || w.gone || w.IntN(20) == 0 {
		return ptr(1 << 20)
	}
	return &handles[w.IntN(len(handles))]
}

// TestRandomTransactions makes the same transactions with nft(8) and with weft: outcomes and tables
// must be equal. WEFT_KNFT_SEED repeats a run.
func TestRandomTransactions(t *testing.T) {
	w := newWorld(t)
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any number
	if s := os.Getenv("WEFT_KNFT_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("WEFT_KNFT_SEED=%d", seed)
	const table = "dice"
	weft := newAdapter(t, w.client, knft.Config{Family: knftables.IPv4Family, Table: table})
	must(t, weft, universe)
	outcomes := map[outcome]int{}
	err := w.real.Do(func() error {
		real, err := knftables.New(knftables.IPv4Family, table, knftables.EmulateDestroy)
		if err != nil {
			return err
		}
		if err := run(t, real, universe); err != nil {
			return err
		}
		for i := range 60 {
			o, err := walk(t, w, seed+uint64(i), real, weft) //nolint:gosec // a small number
			if err != nil {
				return fmt.Errorf("transaction %d: %w", i, err)
			}
			outcomes[o]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("outcomes: %v", outcomes)
	if outcomes[done] < 5 {
		t.Error("hardly any transaction was made")
	}
}

// walk makes one random transaction with both, which have different handles. It runs in the namespace
// of the real one.
func walk(t *testing.T, w *world, seed uint64, real, weft knftables.Interface) (outcome, error) {
	ctx := aggregatortest.Context(t)
	var errs [2]error
	var texts [2]string
	var operations int
	for i, nft := range []knftables.Interface{real, weft} {
		rules, err := nft.ListRules(ctx, "a")
		if err != nil {
			return "", err
		}
		handles := make([]int, len(rules))
		for j, r := range rules {
			handles[j] = *r.Handle
		}
		tx, dice := nft.NewTransaction(), &wanderer{Rand: rand.New(rand.NewPCG(seed, 7))} //nolint:gosec // reproducible
		for range 1 + dice.IntN(4) {
			dice.step(handles)(tx)
		}
		errs[i], texts[i], operations = nft.Run(ctx, tx), tx.String(), tx.NumOperations()
	}
	a, b := list(t, w.real, knftables.IPv4Family, "dice"), list(t, w.weft, knftables.IPv4Family, "dice")
	if x, y := inventory(ctx, real), inventory(ctx, weft); x != y {
		a, b = a+x, b+y
	}
	// Of several errors nft(8) first reports its own.
	same := outcomeOf(errs[0]) == outcomeOf(errs[1]) || operations > 1 && errs[0] != nil && errs[1] != nil
	if !same || a != b {
		return "", errors.New(fmt.Sprint("nft: ", errs[0], "\n", texts[0], "\n", a, "\nweft: ", errs[1], "\n", texts[1], "\n", b))
	}
	return outcomeOf(errs[0]), nil
}
