// Command reference prints the reference of a protocol, in Markdown, from the comments in the .proto file. It
// reads a FileDescriptorSet with source information, as buf build writes it, from standard input.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	if err := reference(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func reference(to io.Writer, from io.Reader) error {
	b, err := io.ReadAll(from)
	if err != nil {
		return err
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(b, &set); err != nil {
		return fmt.Errorf("read descriptors: %w", err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		return fmt.Errorf("read descriptors: %w", err)
	}
	w := bufio.NewWriter(to)
	files.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		if !strings.HasPrefix(string(f.Package()), "google.") {
			file(w, f)
		}
		return true
	})
	return w.Flush()
}

func file(w io.Writer, f protoreflect.FileDescriptor) {
	fmt.Fprintf(w, "# %s\n", f.Package())
	for i := range f.Services().Len() {
		s := f.Services().Get(i)
		fmt.Fprintf(w, "\n## %s\n\n%s\n| call | request | answer | |\n| --- | --- | --- | --- |\n", s.Name(), comment(s, "\n"))
		for j := range s.Methods().Len() {
			m := s.Methods().Get(j)
			fmt.Fprintf(w, "| %s | %s | %s | %s |\n", m.Name(), stream(m.IsStreamingClient(), m.Input()), stream(m.IsStreamingServer(), m.Output()), comment(m, " "))
		}
	}
	fmt.Fprint(w, "\n## Messages\n")
	messages(w, f.Messages())
	enums(w, f.Enums())
}

func messages(w io.Writer, all protoreflect.MessageDescriptors) {
	for i := range all.Len() {
		m := all.Get(i)
		if m.IsMapEntry() {
			continue
		}
		fmt.Fprintf(w, "\n### %s\n\n%s", local(m), comment(m, "\n"))
		if m.Fields().Len() > 0 {
			fmt.Fprint(w, "\n| field | number | type | |\n| --- | --- | --- | --- |\n")
		}
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			text := comment(f, " ")
			if one := f.ContainingOneof(); one != nil && !one.IsSynthetic() {
				text = fmt.Sprintf("one of %s. %s", one.Name(), text)
			}
			fmt.Fprintf(w, "| %s | %d | %s | %s |\n", f.Name(), f.Number(), kind(f), text)
		}
		messages(w, m.Messages())
		enums(w, m.Enums())
	}
}

func enums(w io.Writer, all protoreflect.EnumDescriptors) {
	for i := range all.Len() {
		e := all.Get(i)
		fmt.Fprintf(w, "\n### %s\n\n%s\n| value | number | |\n| --- | --- | --- |\n", local(e), comment(e, "\n"))
		for j := range e.Values().Len() {
			v := e.Values().Get(j)
			fmt.Fprintf(w, "| %s | %d | %s |\n", v.Name(), v.Number(), comment(v, " "))
		}
	}
}

func local(d protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(d.FullName()), string(d.ParentFile().Package())+".")
}

func stream(is bool, m protoreflect.MessageDescriptor) string {
	if is {
		return "stream of " + local(m)
	}
	return local(m)
}

func kind(f protoreflect.FieldDescriptor) string {
	name := f.Kind().String()
	switch {
	case f.IsMap():
		return fmt.Sprintf("map of %s to %s", kind(f.MapKey()), kind(f.MapValue()))
	case f.Message() != nil:
		name = local(f.Message())
	case f.Enum() != nil:
		name = local(f.Enum())
	}
	if f.IsList() {
		return "list of " + name
	}
	return name
}

// comment returns the comment before a declaration; newline replaces line breaks.
func comment(d protoreflect.Descriptor, newline string) string {
	text := strings.TrimSpace(d.ParentFile().SourceLocations().ByDescriptor(d).LeadingComments)
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	if text = strings.Join(lines, newline); newline == "\n" && text != "" {
		return text + "\n"
	}
	return strings.ReplaceAll(text, "|", "\\|")
}
