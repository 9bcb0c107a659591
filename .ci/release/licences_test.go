package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLicence accepts what is allowed, and names the module of what is not, is not known or is missing.
func TestLicence(t *testing.T) {
	const isc = `Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
`
	const gpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.

This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU General Public License for more details.

You should have received a copy of the GNU General Public License along with this program. If not, see <https://www.gnu.org/licenses/>.
`
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"allowed":     {map[string]string{"LICENSE": isc, "README": "what it is"}, "ISC"},
		"other name":  {map[string]string{"Licence.md": isc}, "ISC"},
		"not allowed": {map[string]string{"COPYING": gpl}, "licence of example.com/m: COPYING is GPL-3.0"},
		"not known":   {map[string]string{"LICENSE": "Ask me.\n"}, "licence of example.com/m: LICENSE is not known"},
		"one of two":  {map[string]string{"LICENSE": isc, "LICENSE.more": "Ask me.\n"}, "licence of example.com/m: LICENSE.more is not known"},
		"missing":     {map[string]string{"README": isc}, "licence of example.com/m: there is no file"},
	} {
		dir := t.TempDir()
		for file, text := range test.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := licence(module{Path: "example.com/m", Dir: dir})
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
