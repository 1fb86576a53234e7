package main

import "slices"

// commands is the table of all commands, in the order of help.
func commands() []command {
	return slices.Concat(
		keyCommands(), secretCommands(), ticketCommands(), pictureCommands(), gateCommands(), claimCommands(),
		conflictCommands(), batchCommands(), auditCommands(), orderCommands(), programmeCommands(), deviceCommands(), labCommands(),
	)
}
