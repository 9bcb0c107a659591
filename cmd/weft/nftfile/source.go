package nftfile

import (
	"io"

	"github.com/spf13/cobra"

	weftv1 "github.com/weft-proxy/weft/aggregator/api/v1"
	"github.com/weft-proxy/weft/cmd/weft/cli"
	"github.com/weft-proxy/weft/nft/ruleset"
)

// Source is a file with its fragment's name.
type Source struct{ Path, Name string }

// Selection holds the flags for files.
type Selection struct {
	// Files, directories and "-".
	Files []string
	// Name is the fragment's, for a single file.
	Name      string
	Recursive bool

	priority int32
	includes IncludePath
}

// AddFlags adds --file (-f) and --recursive (-R).
func (s *Selection) AddFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&s.Files, "file", "f", nil, "a .nft file, or a directory of them; - reads standard input; can be repeated")
	cmd.Flags().BoolVarP(&s.Recursive, "recursive", "R", false, "also the .nft files in subdirectories")
	// The only error is an unknown flag.
	_ = cmd.MarkFlagFilename("file", "nft")
}

// AddFragmentFlags adds --name, --priority and --include-path (-I) too.
func (s *Selection) AddFragmentFlags(cmd *cobra.Command) {
	s.AddFlags(cmd)
	s.includes.AddFlag(cmd.Flags())
	cmd.Flags().StringVar(&s.Name, "name", "", "name of the fragment (default: the file's name without .nft)")
	cmd.Flags().Int32Var(&s.priority, "priority", 0, "order among the fragments that share an object, lowest first")
}

// Fragment returns the fragment of a file and its included files.
func (s *Selection) Fragment(stdin io.Reader, from Source) (*weftv1.Fragment, *ruleset.Bundle, error) {
	bundle, err := s.includes.Read(stdin, from.Path)
	if err != nil {
		return nil, nil, err
	}
	return &weftv1.Fragment{Name: from.Name, Priority: s.priority, Nft: bundle.Text}, bundle, nil
}

// Sources returns the files in order; verb is for errors.
func (s *Selection) Sources(verb string) ([]Source, error) {
	paths, err := Paths(s.Files, s.Recursive)
	if err != nil {
		return nil, err
	}
	if s.Name != "" && len(paths) > 1 {
		return nil, cli.Usagef("%s: --name is for one file, and there are %d", verb, len(paths))
	}
	sources := make([]Source, 0, len(paths))
	taken := make(map[string]string, len(paths))
	for _, path := range paths {
		name := FragmentName(s.Name, path)
		if name == "" {
			return nil, cli.Usagef("%s: -f -: give the fragment a --name", verb)
		}
		if other, ok := taken[name]; ok {
			return nil, cli.Usagef("%s: %s and %s would both be fragment %s", verb, other, path, name)
		}
		taken[name] = path
		sources = append(sources, Source{Path: path, Name: name})
	}
	return sources, nil
}
