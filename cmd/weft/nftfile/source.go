package nftfile

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Source is a file and the name of the fragment that it becomes.
type Source struct{ Path, Name string }

// Selection holds the flags that name files.
type Selection struct {
	// Files are files, directories and "-".
	Files []string
	// Name is the name of the fragment of one file, empty for the default.
	Name string
	// Recursive selects the files of subdirectories too.
	Recursive bool
}

// AddFlags adds --file (-f) and --recursive (-R).
func (s *Selection) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&s.Files, "file", "f", nil, "a .nft file, or a directory of them; - reads standard input; can be repeated")
	flags.BoolVarP(&s.Recursive, "recursive", "R", false, "also the .nft files in subdirectories")
}

// AddNameFlag adds --name.
func (s *Selection) AddNameFlag(flags *pflag.FlagSet) {
	flags.StringVar(&s.Name, "name", "", "name of the fragment (default: the file's name without .nft)")
}

// NamesError is a selection of files of which some have no name, or the same one, as fragments.
type NamesError struct{ err error }

// Error says which.
func (e *NamesError) Error() string { return e.err.Error() }

// Sources returns the files in order, each with the name of its fragment.
//
// Possible errors: a *NamesError, those of Paths.
func (s *Selection) Sources() ([]Source, error) {
	paths, err := Paths(s.Files, s.Recursive)
	if err != nil {
		return nil, err
	}
	if s.Name != "" && len(paths) > 1 {
		return nil, &NamesError{fmt.Errorf("--name is for one file, and there are %d", len(paths))}
	}
	sources := make([]Source, 0, len(paths))
	taken := make(map[string]string, len(paths))
	for _, path := range paths {
		name := FragmentName(s.Name, path)
		if name == "" {
			return nil, &NamesError{errors.New("-f -: give the fragment a --name")}
		}
		if other, ok := taken[name]; ok {
			return nil, &NamesError{fmt.Errorf("%s and %s would both be fragment %s", other, path, name)}
		}
		taken[name] = path
		sources = append(sources, Source{Path: path, Name: name})
	}
	return sources, nil
}
