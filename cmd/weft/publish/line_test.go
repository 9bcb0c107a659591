package publish

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// readAll returns the lines of an input, "!" for one that is too long.
func readAll(t *testing.T, in io.Reader, limit int) (got []string, numbers []int) {
	t.Helper()
	l := newLines(in, limit)
	for {
		line, err := l.next()
		switch {
		case errors.Is(err, io.EOF):
			return got, numbers
		case errors.As(err, new(*lineTooLong)):
			line = []byte("!")
		case err != nil:
			t.Fatal(err)
		}
		got, numbers = append(got, string(line)), append(numbers, l.n)
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	for name, tt := range map[string]struct {
		in      string
		limit   int
		want    string
		numbers []int
	}{
		"none":              {"", 10, "", nil},
		"only blank":        {"\n \n\t\r\n", 10, "", nil},
		"no final newline":  {"a\nb", 10, "a b", []int{1, 2}},
		"carriage returns":  {"a\r\nb\r\n", 10, "a b", []int{1, 2}},
		"blank ones count":  {"a\n\n\nb\n", 10, "a b", []int{1, 4}},
		"at the limit":      {"1234567890\nb\n", 10, "1234567890 b", []int{1, 2}},
		"over the limit":    {"12345678901\nb\n", 10, "! b", []int{1, 2}},
		"over, at the end":  {"a\n12345678901", 10, "a !", []int{1, 2}},
		"larger than a buf": {long + "\nb", 1 << 20, long + " b", []int{1, 2}},
		"far over":          {long + "\nb", 100_000, "! b", []int{1, 2}},
	} {
		got, numbers := readAll(t, strings.NewReader(tt.in), tt.limit)
		if strings.Join(got, " ") != tt.want || len(numbers) != len(tt.numbers) {
			t.Errorf("%s: %.80q at %v: want %.80q at %v", name, got, numbers, tt.want, tt.numbers)
			continue
		}
		for i := range numbers {
			if numbers[i] != tt.numbers[i] {
				t.Errorf("%s: line %d has number %d: want %d", name, i, numbers[i], tt.numbers[i])
			}
		}
	}
}

// FuzzLines reads arbitrary input: it is cut into the lines that it has, each is
// decoded or refused in words, and what is decoded can be kept.
func FuzzLines(f *testing.F) {
	f.Add([]byte(declare+"\n"+patchLine(2, "10.0.0.2", "10.0.0.1")), 4096)
	f.Add([]byte("{\"id\": 3, \"withdraw\": \"x\"}\r\n\n{\"id\": 4"), 64)
	f.Add([]byte(`{"id":"5","snapshot":{"name":"m","tables":[{"family":"ip","name":"t","maps":[{"name":"m","type":"ipv4_addr : verdict","timeout":"3s","elements":[{"key":"10.0.0.1","value":"drop"}]}]}]}}`), 4096)
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		limit = 1 + limit&0xffff
		var want [][]byte
		for line := range bytes.Lines(in) {
			if len(bytes.TrimSuffix(line, []byte("\n"))) > limit {
				want = append(want, []byte("!"))
			} else if line = bytes.TrimSpace(line); len(line) > 0 {
				want = append(want, line)
			}
		}
		got, _ := readAll(t, bytes.NewReader(in), limit)
		if len(got) != len(want) {
			t.Fatalf("%d lines: want %d", len(got), len(want))
		}
		for i, line := range got {
			if line != string(want[i]) {
				t.Fatalf("line %d is %q: want %q", i, line, want[i])
			}
			req, id, err := decode([]byte(line))
			switch {
			case err != nil && (req != nil || strings.ContainsAny(err.Error(), "\n\u00a0")):
				t.Fatalf("decode %q: %v and %q", line, req, err)
			case err == nil && (id == nil || *id != req.GetId()):
				t.Fatalf("decode %q: id %v", line, id)
			}
			a := answer{ID: id}
			if err != nil {
				a.refuse(i, err)
			} else if f := req.GetSnapshot(); f != nil {
				if c, err := newContent(f); err == nil {
					_ = c.patch(req.GetPatch())
				}
			}
			var out bytes.Buffer
			if err := a.write(&out); err != nil || bytes.Count(out.Bytes(), []byte("\n")) != 1 {
				t.Fatalf("answer %q: %v", out.Bytes(), err)
			}
		}
	})
}
