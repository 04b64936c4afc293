package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// choice is a flag of two words, unset unless given.
type choice struct {
	yes, no string
	value   **bool
}

func (c choice) String() string { return "" }
func (c choice) Type() string   { return c.yes + "|" + c.no }

func (c choice) Set(s string) error {
	switch strings.ToLower(s) {
	case c.yes:
		*c.value = new(true)
	case c.no:
		*c.value = new(false)
	default:
		return fmt.Errorf("say %s or %s", c.yes, c.no)
	}
	return nil
}

func choiceFlag(c *cobra.Command, value **bool, name, yes, no, usage string) {
	c.Flags().Var(choice{yes, no, value}, name, usage)
	_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions([]string{yes, no}, cobra.ShellCompDirectiveNoFileComp))
}
