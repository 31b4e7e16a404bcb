"""Campaigns: many questions about many rows from one file, kept in a store, resumed by running again."""

from gpcert.cli.campaign.file import Campaign, read_campaign
from gpcert.cli.campaign.page import campaign_pages, campaign_rows
from gpcert.cli.campaign.rounds import run_campaign
from gpcert.cli.campaign.standing import PartStatus, changed, lines

__all__ = [
    "Campaign",
    "PartStatus",
    "campaign_pages",
    "campaign_rows",
    "changed",
    "lines",
    "read_campaign",
    "run_campaign",
]
