"""What everything else agrees on: artifacts, cases, config, policy, identities, errors."""
